// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/e2erig"
)

// F3: the deployment controller is killed before and after each of its writes: while it
// installs 60 objects, among them a definition and a resource of it, a namespace, rights
// and workloads; while it upgrades to a revision that adds, removes, renames and changes;
// and while it removes all. After a restart the deployment ends as it would have ended.
// The release suite takes every write, the other one a few.
func TestF3KilledAtEachWrite(t *testing.T) {
	r := newRig(t)
	points := []killPoint{{2, false}, {33, true}}
	if full() {
		points = nil
		for n := int32(1); n <= 90; n++ {
			points = append(points, killPoint{n, true}, killPoint{n, false})
		}
	}
	for i, point := range points {
		if kills := r.killedLife(t, point, full() && i == len(points)/2); kills == 0 {
			t.Logf("no phase has %d writes: all points are tried", point.write)
			return
		}
	}
}

// killPoint is a write at which the controller is killed, before or after it is committed.
type killPoint struct {
	write  int32
	before bool
}

func (p killPoint) String() string {
	if p.before {
		return fmt.Sprintf("before write %d", p.write)
	}
	return fmt.Sprintf("after write %d", p.write)
}

// killedLife takes a deployment through its life, killing the controller once in each
// phase, and says in how many phases there was such a write.
func (r *rig) killedLife(t *testing.T, point killPoint, quiet bool) (kills int) {
	t.Run(point.String(), func(t *testing.T) {
		namespace := r.Namespace(t)
		first, second := sixty(t, namespace, 1), sixty(t, namespace, 2)
		kinds := kindsOf(append(slices.Clone(first), second...))
		t.Cleanup(func() { r.dropDefinition(t, namespace) })
		repository := "f3-" + namespace
		image := r.Push(t, repository+":v1", filesOf(t, first))
		mark := r.mark(t)
		key := client.ObjectKey{Namespace: namespace, Name: "app"}
		phase := func(name string, act func(), settled func()) {
			t.Helper()
			killed := r.killAt(point, namespace)
			act()
			settled()
			if killed() {
				kills++
			}
			if quiet {
				r.quiet(t, namespace, 6*time.Second)
			}
			t.Logf("%s: killed %v", name, killed())
		}
		phase("install", func() {
			r.Deploy(t, namespace, "app", image, func(d *v1alpha1.BundleDeployment) { d.Spec.Interval.Duration = 2 * time.Second })
		}, func() { r.soundly(t, key, idsOf(first, namespace), kinds) })
		phase("upgrade", func() { r.Push(t, repository+":v1", filesOf(t, second)) }, func() { r.soundly(t, key, idsOf(second, namespace), kinds) })
		phase("removal", func() {
			if err := r.Admin.Delete(t.Context(), &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}); err != nil {
				t.Fatal(err)
			}
		}, func() { r.gone(t, key, kinds) })
		r.asTenant(t, mark, namespace)
	})
	return kills
}

// killAt has the controller killed at a write, and started again. The function that it
// returns tells whether that happened, and ends it.
func (r *rig) killAt(point killPoint, namespace string) func() bool {
	var writes atomic.Int32
	var killed atomic.Bool
	var restarted sync.WaitGroup
	hit := func(request *http.Request) {
		if isControllerWrite(request, namespace) && writes.Add(1) == point.write {
			killed.Store(true)
			r.Kill(deploymentController)
			restarted.Go(func() { _ = r.Start(deploymentController) })
		}
	}
	if point.before {
		r.proxy.onRequest(hit)
	} else {
		r.proxy.onAnswer(func(request *http.Request, _ int) { hit(request) })
	}
	return func() bool {
		r.proxy.onRequest(nil)
		r.proxy.onAnswer(nil)
		restarted.Wait()
		return killed.Load()
	}
}

// isControllerWrite tells whether a request of the deployment controller changes
// something for a deployment of a namespace: its own status, its source, or an object
// that carries the name of the namespace.
func isControllerWrite(request *http.Request, namespace string) bool {
	path := request.URL.Path
	switch request.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return false
	}
	return request.URL.Query().Get("dryRun") == "" && strings.Contains(path, namespace) && !strings.Contains(path, "/events") &&
		!(strings.Contains(path, "/bundlesources/") && request.Method == http.MethodPatch) && !strings.Contains(path, "selfsubject")
}

// gone waits until a deployment and what it owned are gone, its definition aside, which
// stays and is marked.
func (r *rig) gone(t *testing.T, key client.ObjectKey, kinds []schema.GroupVersionKind) {
	t.Helper()
	r.Eventually(t, t.Context(), "the deployment and its objects are gone", func(ctx context.Context) (bool, string) {
		var d v1alpha1.BundleDeployment
		if err := r.Admin.Get(ctx, key, &d); !apierrors.IsNotFound(err) {
			return false, e2erig.Describe(&d)
		}
		live, err := r.owned(ctx, key, kinds)
		if err != nil {
			return false, err.Error()
		}
		for id := range live {
			if id.Kind == "CustomResourceDefinition" {
				delete(live, id)
			}
		}
		left := differences("left", live, nil)
		return left == "", left
	})
}

// asTenant wants every write to an object of the bundle to be made as the account (I4). The one write beside those to its own
// kinds is to the Secret with the keys of the installation, when the first process fills it.
func (r *rig) asTenant(t *testing.T, since controlplane.AuditMark, namespace string) {
	t.Helper()
	events, err := r.CP.Audit(since)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.User != "system:serviceaccount:satchel-system:"+deploymentController || !isWriting(e) || e.APIGroup == v1alpha1.GroupVersion.Group ||
			strings.HasSuffix(e.RequestURI, "/namespaces/satchel-system/secrets/"+deploymentController+"-keys") {
			continue
		}
		if want := "system:serviceaccount:" + namespace + ":installer"; e.ImpersonatedUser != want {
			t.Errorf("not as %s: %s", want, e)
		}
	}
}

// dropDefinition deletes what a removal leaves.
func (r *rig) dropDefinition(t *testing.T, namespace string) {
	t.Helper()
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	crd.SetName("boxes." + namespace + ".example.com")
	if err := client.IgnoreNotFound(r.Admin.Delete(context.WithoutCancel(t.Context()), crd)); err != nil {
		t.Error(err)
	}
}

// sixty is a bundle of 60 objects. Of its second version five ConfigMaps are new, five
// are gone, five have another name and ten another content.
func sixty(t *testing.T, namespace string, version int) []*unstructured.Unstructured {
	t.Helper()
	group := namespace + ".example.com"
	objects := manifests(t, strings.NewReplacer("NS", namespace, "GROUP", group, "VERSION", fmt.Sprint(version)).Replace(base))
	for i := range 60 - len(objects) {
		name, content := fmt.Sprintf("c%02d", i), "same"
		if version == 2 {
			switch {
			case i < 5:
				name = fmt.Sprintf("new-%02d", i)
			case i < 10:
				name = fmt.Sprintf("renamed-%02d", i)
			case i < 20:
				content = "changed"
			}
		}
		objects = append(objects, manifests(t, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {content: %s}", name, content))...)
	}
	return objects
}

// base are the objects that are not ConfigMaps.
const base = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boxes.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {kind: Box, listKind: BoxList, plural: boxes, singular: box}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
---
apiVersion: GROUP/v1
kind: Box
metadata: {name: box}
spec: {size: "VERSION"}
---
apiVersion: v1
kind: Namespace
metadata: {name: NS-extra}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: inside, namespace: NS-extra}
data: {version: "VERSION"}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: runner}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: runner}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: runner}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: runner}
subjects: [{kind: ServiceAccount, name: runner, namespace: NS}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: NS-reader}
rules: [{apiGroups: [""], resources: [nodes], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: NS-reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: NS-reader}
subjects: [{kind: ServiceAccount, name: runner, namespace: NS}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {version: "VERSION"}}
    spec: {serviceAccountName: runner, containers: [{name: main, image: "example.org/web:VERSION"}]}
`

func manifests(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(text, "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	return objects
}

func filesOf(t *testing.T, objects []*unstructured.Unstructured) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	for i, object := range objects {
		content, err := yaml.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		files[fmt.Sprintf("%03d.yaml", i)] = &fstest.MapFile{Data: content}
	}
	return files
}
