// SPDX-License-Identifier: Apache-2.0

package nslabel_test

import (
	"context"
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/internal/controller/nslabel"
)

// apiServer answers every request for a Namespace in the same way.
type apiServer struct {
	client.Reader

	labels map[string]string
	err    error
	asked  int
}

func (a *apiServer) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	a.asked++
	object.SetName(key.Name)
	object.SetLabels(a.labels)
	return a.err
}

func TestRequired(t *testing.T) {
	for value, want := range map[string]bool{"required": true, "Required": false, "": false} {
		server := &apiServer{labels: map[string]string{"satchel.dev/signatures": value}}
		var reader nslabel.Reader
		for range 3 {
			got, err := reader.Required(t.Context(), server, "shop")
			if err != nil || got.Signatures != want || got.Approval {
				t.Errorf("%q: %+v, %v", value, got, err)
			}
		}
		if server.asked != 1 {
			t.Errorf("%q: asked %d times at once", value, server.asked)
		}
	}
}

// A label that cannot be read (T29) is an error each time.
func TestT29UnreadableLabels(t *testing.T) {
	server := &apiServer{err: errors.New("forbidden")}
	var reader nslabel.Reader
	for range 2 {
		if _, err := reader.Required(t.Context(), server, "shop"); err == nil {
			t.Error("no error")
		}
	}
	server.err, server.labels = nil, map[string]string{"satchel.dev/approval": "required"}
	if got, err := reader.Required(t.Context(), server, "shop"); err != nil || !got.Approval {
		t.Errorf("%+v, %v", got, err)
	}
}
