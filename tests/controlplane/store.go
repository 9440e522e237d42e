// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// Store is what is in etcd, past the API server: objects with their UIDs and resource versions.
type Store struct {
	client *http.Client
	url    string
}

// Stored is a key with the revision that wrote it, which is the resource version of the object.
type Stored struct {
	Key      []byte `json:"key"`
	Value    []byte `json:"value"`
	Revision int64  `json:"mod_revision,string"`
}

// Put writes a key, and returns the revision that this got.
func (s Store) Put(ctx context.Context, key string, value []byte) (revision int64, err error) {
	var answer struct {
		Header struct {
			Revision int64 `json:"revision,string"`
		} `json:"header"`
	}
	err = s.call(ctx, "/v3/kv/put", map[string][]byte{"key": []byte(key), "value": value}, &answer)
	return answer.Header.Revision, err
}

// All returns all objects.
func (s Store) All(ctx context.Context) ([]Stored, error) {
	var answer struct {
		Keys []Stored `json:"kvs"`
	}
	err := s.call(ctx, "/v3/kv/range", map[string][]byte{"key": []byte("/registry/"), "range_end": []byte("/registry0")}, &answer)
	return answer.Keys, err
}

func (s Store) call(ctx context.Context, path string, question map[string][]byte, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // only read from
	if response.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
		return fmt.Errorf("etcd answered %s: %s", response.Status, said)
	}
	return json.NewDecoder(response.Body).Decode(answer)
}
