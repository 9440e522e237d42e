// SPDX-License-Identifier: Apache-2.0

package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/registryv1"
	"github.com/satchel-dev/satchel/internal/worker"
	"github.com/satchel-dev/satchel/internal/worker/child"
	"github.com/satchel-dev/satchel/internal/worker/jobs"
)

func TestMain(m *testing.M) {
	child.Main(jobs.Handlers())
	if dir := os.Getenv(convertingIn); dir != "" {
		os.Exit(convertForEver(dir))
	}
	os.Exit(m.Run())
}

func newPool(t testing.TB, change func(*worker.Options)) *worker.Pool {
	t.Helper()
	o := worker.DefaultOptions()
	change(&o)
	pool, err := worker.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	})
	return pool
}

// TestProcessesConvertAsInProcess: one bundle of each format through real worker processes.
func TestProcessesConvertAsInProcess(t *testing.T) {
	pool := newPool(t, func(*worker.Options) {})
	for _, bundle := range []string{"shop", "kiosk", "press", "gadget"} {
		requireEqual(t, pool, os.DirFS(filepath.Join(bundles, bundle)), convert.Options{
			InstallNamespace: "tenant", Overlay: all, RegistryV1: registryv1.Options{CertificateProvider: registryv1.SelfSigned},
		})
	}
}

// costly is a kustomization of few bytes that takes minutes: each patch is tried on each object.
func costly(size int) fstest.MapFS {
	var objects, patches strings.Builder
	patches.WriteString("resources: [all.yaml]\npatches:\n")
	for i := range size {
		fmt.Fprintf(&objects, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\n", i)
		patches.WriteString("- {target: {kind: C.*}, patch: '[{\"op\": \"add\", \"path\": \"/data\", \"value\": {\"a\": \"b\"}}]'}\n")
	}
	return fstest.MapFS{"kustomization.yaml": {Data: []byte(patches.String())}, "all.yaml": {Data: []byte(objects.String())}}
}

// M25: a bundle that takes minutes is ended by its CPU limit, while others are converted, and the pool
// continues.
func TestM25CostlyBundleEndsAtItsLimit(t *testing.T) {
	pool := newPool(t, func(o *worker.Options) { o.CPU = 2 * time.Second })
	ended := make(chan error, 1)
	go func() {
		_, err := jobs.Convert(t.Context(), pool, "attacker", jobs.Conversion{Files: pack(t, costly(2000)), Options: convert.Options{InstallNamespace: "attacker"}})
		ended <- err
	}()
	for range 5 {
		requireEqual(t, pool, os.DirFS(filepath.Join(bundles, "kiosk")), convert.Options{InstallNamespace: "tenant"})
	}
	var limit *worker.LimitError
	if err := <-ended; !errors.As(err, &limit) || limit.Limit != worker.LimitCPU || limit.Budget != "2s" {
		t.Errorf("the costly bundle ended with %v", err)
	}
	requireEqual(t, pool, costly(3), convert.Options{InstallNamespace: "attacker"})
}

// TestCancelledConversionsEnd: a cancelled conversion uses no more CPU time.
func TestCancelledConversionsEnd(t *testing.T) {
	pool := newPool(t, func(*worker.Options) {})
	ctx, cancel := context.WithCancel(t.Context())
	files := pack(t, costly(2000))
	time.AfterFunc(200*time.Millisecond, cancel)
	_, err := jobs.Convert(ctx, pool, "attacker", jobs.Conversion{Files: files, Options: convert.Options{InstallNamespace: "attacker"}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestUpgradesAreJudgedInProcesses: with the results of crdsafety.
func TestUpgradesAreJudgedInProcesses(t *testing.T) {
	pool := newPool(t, func(*worker.Options) {})
	crd := func(properties string) *unstructured.Unstructured {
		object := &unstructured.Unstructured{}
		text := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.example.org"},
"spec":{"group":"example.org","names":{"kind":"Thing","plural":"things"},"scope":"Namespaced","versions":[{"name":"v1","served":true,"storage":true,
"schema":{"openAPIV3Schema":{"type":"object","properties":{` + properties + `}}}}]},"status":{"storedVersions":["v1"]}}`
		if err := object.UnmarshalJSON([]byte(text)); err != nil {
			t.Fatal(err)
		}
		return object
	}
	judgement, err := jobs.Judge(t.Context(), pool, "tenant", crd(`"a":{"type":"string"},"b":{"type":"string"}`), crd(`"a":{"type":"string"}`))
	if err != nil || len(judgement.Breaking) != 1 || judgement.Breaking[0].Path != ".b" {
		t.Errorf("%+v, %v", judgement, err)
	}
}
