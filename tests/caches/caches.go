// SPDX-License-Identifier: Apache-2.0

// Package caches fills caches of BundleDeployments, as a manager has them, for tests of what is looked up in them.
package caches

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/manager"
)

// Of is a cache, with indexes, of the deployments that an API server lists. It ends with the test.
func Of(t *testing.T, list *v1alpha1.BundleDeploymentList, indexes ...func(client.FieldIndexer) error) cache.Cache {
	t.Helper()
	server := serve(t, list)
	mapper := apimeta.NewDefaultRESTMapper(nil)
	mapper.Add(v1alpha1.GroupVersion.WithKind(v1alpha1.BundleDeploymentKind), apimeta.RESTScopeNamespace)
	made, err := cache.New(&rest.Config{Host: server.URL}, cache.Options{Scheme: manager.Scheme(), Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	for _, index := range indexes {
		if err := index(made); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- made.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if !made.WaitForCacheSync(ctx) {
		t.Fatal("the cache is not filled")
	}
	return made
}

// serve answers every list with one, and no watch ever with anything.
func serve(t *testing.T, list *v1alpha1.BundleDeploymentList) *httptest.Server {
	t.Helper()
	list.APIVersion, list.Kind = v1alpha1.GroupVersion.String(), v1alpha1.BundleDeploymentKind+"List"
	answer, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Query().Get("sendInitialEvents") != "":
			w.WriteHeader(http.StatusUnprocessableEntity) // lists are asked for then
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`))
		case r.URL.Query().Get("watch") != "":
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush() //nolint:errcheck,forcetypeassert // that of net/http
			<-r.Context().Done()
		default:
			_, _ = w.Write(answer)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// Allocated is how many bytes a function allocates, if nothing else runs meanwhile.
func Allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
