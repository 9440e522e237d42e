// SPDX-License-Identifier: Apache-2.0

package states

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/tests/controlplane"
)

// server is the address of the artifact server in recordings.
const server = "http://artifacts.example"

// Files of a recording.
const (
	objectsFile = "objects.yaml"
	filesFolder = "files"
)

// object is one object in a recording.
type object struct {
	Key      string         `json:"key"`
	Revision int64          `json:"revision"`
	Object   map[string]any `json:"object"`
}

// needless are kinds that a control plane makes again by itself.
var needless = regexp.MustCompile(`^/registry/(events|leases|pods|replicasets|endpointslices|services/endpoints|controllerrevisions|configmaps/[^/]*/kube-root-ca\.crt)`)

// wanted tells whether a recording has an object: those of its namespaces, the identity of the cluster, and the keys of the installation.
func wanted(key string) bool {
	return !needless.MatchString(key) && (strings.Contains(key, "/"+prefix) ||
		key == "/registry/namespaces/kube-system" || strings.HasSuffix(key, "/bundle-deployment-controller-keys"))
}

// record writes the objects and the files of an installation, of which the artifact server has the address, into a folder.
func record(ctx context.Context, cp *controlplane.ControlPlane, address, dir, to string) error {
	all, err := cp.Store().All(ctx)
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b controlplane.Stored) int { return cmp.Compare(a.Revision, b.Revision) })
	var kept []object
	for _, one := range all {
		if !wanted(string(one.Key)) {
			continue
		}
		content, err := decode(one.Value, address)
		if err != nil {
			return fmt.Errorf("decoding %s: %w", one.Key, err)
		}
		kept = append(kept, object{Key: string(one.Key), Revision: one.Revision, Object: content})
	}
	text, err := yaml.Marshal(kept)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	for _, folder := range []string{filepath.Join("store", "bundlesource"), filepath.Join("cache", "applied")} {
		if err := os.CopyFS(filepath.Join(to, filesFolder, folder), os.DirFS(filepath.Join(dir, folder))); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(to, objectsFile), text, 0o600)
}

// decode reads a stored object, in protobuf or JSON.
func decode(stored []byte, address string) (content map[string]any, err error) {
	text := stored
	if !json.Valid(stored) {
		decoded, kind, err := scheme.Codecs.UniversalDeserializer().Decode(stored, nil, nil)
		if err != nil {
			return nil, err
		}
		decoded.GetObjectKind().SetGroupVersionKind(*kind)
		if text, err = json.Marshal(decoded); err != nil {
			return nil, err
		}
	}
	err = json.Unmarshal([]byte(strings.ReplaceAll(string(text), address, server)), &content)
	return content, err
}

// encode is the form in which the API server stores an object: an apply that changes nothing then writes nothing.
func encode(content map[string]any) ([]byte, error) {
	text, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	typed, _, err := scheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
	if runtime.IsNotRegisteredError(err) {
		return text, nil // a custom resource
	}
	if err != nil {
		return nil, err
	}
	var stored bytes.Buffer
	err = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(typed, &stored)
	return stored.Bytes(), err
}

// recorded reads the objects of a recording, for an artifact server with this address. Hooks that run were started just now, so that
// they are not over their timeout.
func recorded(text, address string) (all []object, err error) {
	if err = yaml.Unmarshal([]byte(strings.ReplaceAll(text, server, address)), &all); err != nil {
		return nil, err
	}
	for _, one := range all {
		if _, runs, _ := unstructured.NestedMap(one.Object, "status", "hooks", "running"); runs {
			if err := unstructured.SetNestedField(one.Object, time.Now().UTC().Format(time.RFC3339), "status", "hooks", "running", "startTime"); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// seed writes the objects of a recording to etcd, with the revisions that they had.
func seed(ctx context.Context, to controlplane.Store, all []object) error {
	revision := int64(0)
	for _, one := range all {
		for revision < one.Revision-1 {
			var err error
			if revision, err = to.Put(ctx, "/filler", nil); err != nil {
				return err
			}
		}
		content, err := encode(one.Object)
		if err != nil {
			return fmt.Errorf("encoding %s: %w", one.Key, err)
		}
		if revision, err = to.Put(ctx, one.Key, content); err != nil {
			return err
		}
		if revision != one.Revision {
			return fmt.Errorf("%s got the revision %d, and had %d", one.Key, revision, one.Revision)
		}
	}
	return nil
}
