// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

var (
	kinds  = flag.Int("kinds", 5000, "how many CRDs there are")
	groups = flag.Int("groups", 300, "in how many API groups they are")
)

// samples is how many deployments are installed for a figure.
const samples = 7

// cluster is a control plane with the deployment controller.
type cluster struct {
	admin     client.Client
	discovery discovery.DiscoveryInterface
	served    *installation.Deployments
	installed int
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	if os.Getenv("SATCHEL_FULL") == "" {
		t.Skip("thousands of CRDs are for the release suite: SATCHEL_FULL=1")
	}
	ctrl.SetLogger(logr.Discard())
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cp.Stop() })
	if err := installation.Install(t.Context(), cp.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	config := cp.RESTConfig()
	config.QPS, config.Burst = -1, -1
	c := &cluster{}
	if c.admin, err = installation.Client(config); err != nil {
		t.Fatal(err)
	}
	if c.discovery, err = discovery.NewDiscoveryClientForConfig(config); err != nil {
		t.Fatal(err)
	}
	if c.served, err = installation.StartDeployments(t.Context(), cp.RESTConfig(), t.TempDir(), 8); err != nil {
		t.Fatal(err)
	}
	return c
}

// install is how long it takes until a bundle of a definition, a resource of it and twenty objects
// is Ready, in a new namespace with a new account: the median of some.
func (c *cluster) install(t *testing.T) time.Duration {
	t.Helper()
	var all []time.Duration
	for range samples {
		c.installed++
		namespace := fmt.Sprint("tenant-", c.installed)
		c.must(t, c.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
		c.must(t, installation.Admin(t.Context(), c.admin, namespace, "installer"))
		files := fstest.MapFS{"crd.yaml": manifest(definition(namespace+".example.org", 0)), "cr.yaml": file(
			"apiVersion: " + namespace + ".example.org/v1\nkind: Kind0\nmetadata: {name: one}\n")}
		for i := range 20 {
			files[fmt.Sprint(i, ".yaml")] = file(fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c-%d}\n", i))
		}
		_, err := c.served.Publish(t.Context(), namespace, "app", "v1", files)
		c.must(t, err)
		d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "app"}}
		d.Spec.ServiceAccountName = "installer"
		d.Spec.SourceRef = &v1alpha1.SourceReference{Kind: v1alpha1.BundleSourceKind, Name: "app"}
		began := time.Now()
		c.must(t, c.admin.Create(t.Context(), d))
		c.eventually(t, namespace+" is Ready", 20*time.Millisecond, 5*time.Minute, func(ctx context.Context) (bool, string) {
			err := c.admin.Get(ctx, client.ObjectKeyFromObject(d), d)
			return err == nil && conditions.IsTrue(d, meta.ReadyCondition), conditions.GetMessage(d, meta.ReadyCondition)
		})
		all = append(all, time.Since(began))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// crowd creates the definitions and waits until all groups are served.
func (c *cluster) crowd(t *testing.T) {
	t.Helper()
	var workers sync.WaitGroup
	numbers := make(chan int)
	for range 8 {
		workers.Go(func() {
			for i := range numbers {
				if err := c.admin.Create(t.Context(), definition(fmt.Sprintf("group-%d.example.com", i%*groups), i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range *kinds {
		numbers <- i
	}
	close(numbers)
	workers.Wait()
	c.eventually(t, "all kinds are served", 2*time.Second, 30*time.Minute, func(context.Context) (bool, string) {
		_, lists, err := c.discovery.ServerGroupsAndResources()
		served := 0
		for _, list := range lists {
			if strings.Contains(list.GroupVersion, ".example.com/") {
				served += len(list.APIResources)
			}
		}
		return served >= *kinds, fmt.Sprint(served, " are served: ", err)
	})
}

// definition is a CRD of the kind of a number.
func definition(group string, number int) *unstructured.Unstructured {
	name := fmt.Sprint("kind", number)
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"spec": map[string]any{
			"group": group, "scope": "Namespaced",
			"names": map[string]any{"kind": "K" + name[1:], "listKind": "K" + name[1:] + "List", "plural": name + "s", "singular": name},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
			}},
		},
	}}
	crd.SetName(name + "s." + group)
	return crd
}

func manifest(object *unstructured.Unstructured) *fstest.MapFile {
	data, err := object.MarshalJSON()
	if err != nil {
		panic(err)
	}
	return &fstest.MapFile{Data: data}
}

func file(content string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(content)} }

func (c *cluster) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) eventually(t *testing.T, what string, every, patience time.Duration, check func(context.Context) (bool, string)) {
	t.Helper()
	var seen string
	err := wait.PollUntilContextTimeout(t.Context(), every, patience, true, func(ctx context.Context) (done bool, _ error) {
		done, seen = check(ctx)
		return done, nil
	})
	if err != nil {
		t.Fatalf("waited in vain: %s; last seen: %s", what, seen)
	}
}

// heap is how many bytes the process holds: of the controller, mostly, and of this test.
func heap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// TestS7ManyKinds: what a cluster knows beside what a bundle is of makes its installation little
// slower, and costs the controller memory once, not once an account.
func TestS7ManyKinds(t *testing.T) {
	c := newCluster(t)
	c.install(t) // what is new in the process is not measured
	few, small := c.install(t), heap()
	began := time.Now()
	c.crowd(t)
	took := time.Since(began)
	c.install(t) // finds the new kinds
	first := heap()
	many := c.install(t)
	large := heap()
	t.Logf("a deployment takes %s on a small cluster, and %s (%.2f times) beside %d CRDs in %d groups, which were served after %s; the heap grew from %d to %d MiB, and by %d KiB for each account more",
		few.Round(time.Millisecond), many.Round(time.Millisecond), float64(many)/float64(few), *kinds, *groups, took.Round(time.Second),
		small>>20, large>>20, (int64(large)-int64(first))/1024/samples)
	if many > 12*few {
		t.Errorf("an installation takes %s instead of %s", many, few)
	}
	if each := (int64(large) - int64(first)) / samples; each > 6<<20 {
		t.Errorf("each account takes %d KiB more", each/1024)
	}
}
