// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/observe"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/digest"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/loader"
	"github.com/satchel-dev/satchel/internal/artifact/server"
	"github.com/satchel-dev/satchel/internal/artifact/storage"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/preview"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// playedCluster plays both controllers for one deployment.
type playedCluster struct {
	testCluster

	store *storage.Store
	url   string
}

func newPlayedCluster(t *testing.T) playedCluster {
	t.Helper()
	c := playedCluster{testCluster: newTestCluster(t)}
	served := httptest.NewUnstartedServer(nil)
	c.url = "http://" + served.Listener.Addr().String()
	store, err := storage.Open(storage.Options{Dir: t.TempDir(), BaseURL: c.url})
	if err != nil {
		t.Fatal(err)
	}
	c.store, served.Config.Handler = store, server.NewHandler(store, server.Options{})
	served.Start()
	t.Cleanup(served.Close)
	c.make(`{apiVersion: v1, kind: ServiceAccount, metadata: {name: installer}}`)
	c.make(`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: installer},
		roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}, subjects: [{kind: ServiceAccount, name: installer}]}`)
	d := aDeployment(func(d *v1alpha1.BundleDeployment) { d.Status = v1alpha1.BundleDeploymentStatus{} })
	c.Create(d)
	source := aSource()
	source.Status.SourcesDigest, source.Status.Artifact = effective.SourcesDigest(&source.Spec), nil
	c.Create(source)
	return c
}

// make creates an object of any kind in the namespace.
func (c playedCluster) make(text string) {
	c.T.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		c.T.Fatal(err)
	}
	object.SetNamespace(c.Namespace)
	if err := c.any().Create(c.T.Context(), object); err != nil {
		c.T.Fatal(err)
	}
}

// any is a client for all kinds.
func (c playedCluster) any() client.Client {
	c.T.Helper()
	made, err := client.New(c.CP.RESTConfig(), client.Options{})
	if err != nil {
		c.T.Fatal(err)
	}
	return made
}

// merge patches an object as another client.
func (c playedCluster) merge(apiVersion, kind, name, patch string) {
	c.T.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind))
	object.SetNamespace(c.Namespace)
	object.SetName(name)
	if err := c.any().Patch(c.T.Context(), object, client.RawPatch("application/merge-patch+json", []byte(patch)), client.FieldOwner("other-client")); err != nil {
		c.T.Fatal(err)
	}
}

func folderOf(t *testing.T, manifests string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "manifests"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "manifests", "all.yaml"), []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// publish makes a bundle the artifact of the source.
func (c playedCluster) publish(manifests string) {
	c.T.Helper()
	stored, err := c.store.Put(c.T.Context(), artifact.SourceOwner(c.Namespace, "podinfo"), "v1", os.DirFS(folderOf(c.T, manifests)))
	if err != nil {
		c.T.Fatal(err)
	}
	var source v1alpha1.BundleSource
	if err := c.Client.Get(c.T.Context(), client.ObjectKey{Namespace: c.Namespace, Name: "podinfo"}, &source); err != nil {
		c.T.Fatal(err)
	}
	source.Status.Artifact = &stored
	if err := c.Client.Status().Update(c.T.Context(), &source); err != nil {
		c.T.Fatal(err)
	}
}

// install applies the artifact as the deployment controller does: impersonating the ServiceAccount, with keyed hashes.
func (c playedCluster) install() {
	c.T.Helper()
	var source v1alpha1.BundleSource
	var d v1alpha1.BundleDeployment
	for name, o := range map[string]client.Object{"source": &source, "deployment": &d} {
		if err := c.Client.Get(c.T.Context(), client.ObjectKey{Namespace: c.Namespace, Name: "podinfo"}, o); err != nil {
			c.T.Fatal(name, err)
		}
	}
	loader, err := loader.New(loader.Options{Client: &http.Client{}, ServerURLs: []string{c.url}, CacheDir: c.T.TempDir(), Limits: fetch.DefaultLimits()})
	if err != nil {
		c.T.Fatal(err)
	}
	content, err := loader.Load(c.T.Context(), artifact.SourceOwner(c.Namespace, "podinfo"), *source.Status.Artifact)
	if err != nil {
		c.T.Fatal(err)
	}
	result, err := convert.Convert(content.FS(), spec.Conversion(&d, spec.Given{}, convert.Limits{}))
	if err != nil {
		c.T.Fatal(err)
	}
	pool, err := tenant.NewPool(c.CP.RESTConfig(), tenant.Options{})
	if err != nil {
		c.T.Fatal(err)
	}
	account, err := pool.Client(tenant.Identity{Namespace: c.Namespace, ServiceAccount: "installer"})
	if err != nil {
		c.T.Fatal(err)
	}
	account = account.For(d.Name)
	asked, err := spec.Observing(&d, false)
	if err != nil {
		c.T.Fatal(err)
	}
	previous, err := inventory.Decode(d.Status.Inventory)
	if err != nil {
		c.T.Fatal(err)
	}
	asked.Owner, asked.Desired, asked.HashKey = inventory.Owner{Namespace: c.Namespace, Name: "podinfo"}, result.Objects, []byte("a key")
	asked.Previous = previous
	in, err := observe.Cluster(c.T.Context(), account, asked)
	if err != nil {
		c.T.Fatal(err)
	}
	done, err := apply.Apply(c.T.Context(), account, plan.Make(in), apply.Options{Earlier: appliedBefore(in)})
	if err != nil || len(done.Errors()) > 0 {
		c.T.Fatal(err, done.Errors())
	}
	target, err := pool.Target(c.T.Context())
	if err != nil {
		c.T.Fatal(err)
	}
	done.Inventory.Target = target
	if d.Status.Inventory, err = done.Inventory.Encode(); err != nil {
		c.T.Fatal(err)
	}
	d.Status.ObservedGeneration, d.Status.Applied.Revision = d.Generation, source.Status.Artifact.Revision
	d.Status.Conditions = []metav1.Condition{}
	digest, err := digest.Content(result.Objects, effective.InstallNamespace(&d))
	if err != nil {
		c.T.Fatal(err)
	}
	d.Status.Plan = &v1alpha1.PlanStatus{Content: digest, Digest: "sha256:" + strings.Repeat("d", 64)}
	if err := c.Client.Status().Update(c.T.Context(), &d); err != nil {
		c.T.Fatal(err)
	}
}

// appliedBefore sets the state that the controller stores: the desired fields were applied before.
func appliedBefore(in plan.Input) func(inventory.Entry) []*unstructured.Unstructured {
	desired := map[inventory.ID]*unstructured.Unstructured{}
	for _, object := range in.Desired {
		desired[object.ID] = object.Desired
	}
	return func(entry inventory.Entry) []*unstructured.Unstructured {
		return []*unstructured.Unstructured{desired[entry.ID]}
	}
}

// planned is what plan -o json prints.
func (c playedCluster) planned(code int, args ...string) preview.Preview {
	c.T.Helper()
	got := c.Satchel(append([]string{"plan", "podinfo", "-o", "json"}, args...)...)
	var v preview.Preview
	if got.Code != code || json.Unmarshal([]byte(got.Out), &v) != nil {
		c.T.Fatalf("exit %d, want %d: %s", got.Code, code, got)
	}
	return v
}

const (
	webVersion1 = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: red, size: small}
---
apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {password: first-secret}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "example.org/web:1", ports: [{containerPort: 80}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: old}
spec: {ports: [{port: 80}]}
`
	webVersion2 = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: blue, size: small}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: added}
---
apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {password: second-secret}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "example.org/web:2", ports: [{containerPort: 80}]}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: web}]
`
)

// The preview shows exactly what the controller does then, from the first install on.
func TestPlanOfCluster(t *testing.T) {
	c := newPlayedCluster(t)
	c.Want(c.Satchel("plan", "podinfo"), kit.ExitError, "has no artifact yet")
	c.publish(webVersion1)

	first := c.planned(kit.ExitNo)
	if len(first.Objects) != 4 || first.Objects[0].Verb != "Create" || first.Digest != "" || first.Account.Unchecked != "" || len(first.Account.Missing) > 0 {
		t.Errorf("the first install: %+v", first)
	}
	c.Want(c.Satchel("plan", "podinfo"), kit.ExitNo, "4 to create", "+ create", "new: example.org/web:1", "Approval: not needed, because spec.approval.mode is Automatic")
	c.install()

	settled := c.planned(kit.ExitOK)
	if len(settled.Objects) != 0 || settled.Unchanged != 4 || settled.Content != first.Content || settled.Digest == "" {
		t.Errorf("what was installed: %+v", settled)
	}
	c.Want(c.Satchel("plan", "podinfo", "-o", "diff"), kit.ExitOK)

	c.merge("v1", "ConfigMap", "settings", `{"data": {"color": "green", "theirs": "x"}}`)
	c.Want(c.Satchel("plan", "podinfo", "-o", "diff"), kit.ExitNo, "-  color: green\n+  color: red\n", "--- live/ConfigMap "+c.Namespace+"/settings\n+++ planned/")
	c.Want(c.Satchel("plan", "podinfo", "--ignore-snippet"), kit.ExitNo, "drift:\n  ignore:\n  - paths:\n    - /data/color\n    target:\n      kind: ConfigMap\n      name: settings\n")
	c.Want(c.Satchel("plan", "podinfo", "--fields"), kit.ExitNo, "1 to update", `.data.color: "green" -> "red"`)

	c.publish(webVersion2)
	v := c.planned(kit.ExitNo)
	verbs := map[string]string{}
	for _, o := range v.Objects {
		verbs[o.Kind+" "+o.Name] = o.Verb
	}
	for title, verb := range map[string]string{
		"ConfigMap settings": "Update", "ConfigMap added": "Create", "Secret login": "Update", "Deployment web": "Update", "Service old": "Delete", "Role reader": "Create",
	} {
		if verbs[title] != verb {
			t.Errorf("%s: %q, want %q in %v", title, verbs[title], verb, verbs)
		}
	}
	text := c.Satchel("plan", "podinfo", "--fields")
	c.Want(text, kit.ExitNo, `service account "`+c.Namespace+`/web", in namespace `+c.Namespace+`: get configmaps`,
		"example.org/web:1 -> example.org/web:2", "Pods are replaced:", ".data.password: changes (hidden)")
	for _, got := range []outcome{
		text, c.Satchel("plan", "podinfo", "-o", "diff"), c.Satchel("plan", "podinfo", "-o", "json"), c.Satchel("plan", "podinfo", "--ignore-snippet"),
	} {
		if said := got.Out + got.Err; strings.Contains(said, "secret\"") || strings.Contains(said, "c2VjcmV0") || strings.Contains(said, "Zmlyc3Q") || strings.Contains(said, "c2Vjb25k") {
			t.Errorf("a Secret is given away: %s", got)
		}
	}
	c.Want(c.Satchel("plan", "podinfo", "-o", "diff"), kit.ExitNo, "-  password: (hidden)\n+  password: (hidden, another one)\n", "--- live/Service "+c.Namespace+"/old\n")

	local := c.planned(kit.ExitNo, "--path", folderOf(t, webVersion2))
	if local.Content != v.Content || len(local.Objects) != len(v.Objects) {
		t.Errorf("the same bundle on the disk: %s and %d objects, want %s and %d", local.Content, len(local.Objects), v.Content, len(v.Objects))
	}
	c.install()
	if again := c.planned(kit.ExitNo); again.Content != v.Content || len(again.Objects) != 1 {
		t.Errorf("nothing but the object that is pruned at the end differs: %+v", again.Objects)
	}
}

// The RBAC of a deployment is enough for what is applied and for what is planned, with the inputs of its spec.
func TestRBACOfADeployment(t *testing.T) {
	c := newPlayedCluster(t)
	c.publish(webVersion1)
	c.install()
	c.publish(webVersion2)
	c.merge("satchel.dev/v1alpha1", "BundleDeployment", "podinfo", `{"spec": {"serviceAccountName": "fresh", "processors": [{"variables": {"valuesFrom": [{"kind": "Secret", "name": "variables", "optional": true}]}}]}}`)
	c.make(`{apiVersion: v1, kind: ServiceAccount, metadata: {name: fresh}}`)

	missing := c.Satchel("rbac", "podinfo", "--missing")
	plan := c.Satchel("plan", "podinfo")
	c.Want(plan, kit.ExitError, "the ServiceAccount cannot get Secret "+c.Namespace+"/variables, which the spec names")
	if missing.Code != kit.ExitOK || !strings.HasSuffix(plan.Out, missing.Out) || len(c.planned(kit.ExitError).Account.Manifests) != 2 {
		t.Errorf("plan does not end with what is missing: %s\n%s", missing, plan)
	}

	rbac := c.Satchel("rbac", "podinfo")
	c.Want(rbac, kit.ExitOK, "  - variables\n", "  - services\n", "  - reader\n", "name: fresh\n")
	c.Want(c.Satchel("rbac", "podinfo", "--strict"), kit.ExitOK, "  - old\n", "  - added\n", "  - settings\n")
	c.Want(c.Satchel("rbac", "podinfo", "--remote"), kit.ExitError, "has no other cluster in spec.target, so --remote has no effect")
	c.Want(c.Satchel("rbac", "podinfo", "--name", "other"), kit.ExitError, "--name is about folders and images")
	for document := range strings.SplitSeq(rbac.Out, "---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		if len(object.Object) == 0 || object.GetKind() == "ServiceAccount" || object.GetKind() == "Namespace" {
			continue
		}
		if err := c.any().Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	c.Want(c.Satchel("rbac", "podinfo", "--missing"), kit.ExitOK)
	if got := c.planned(kit.ExitNo); len(got.Account.Missing) > 0 {
		t.Errorf("with what rbac prints, the account lacks %+v", got.Account.Missing)
	}
}

// A user with few permissions sees less, and the output names what is missing.
func TestPlanOfUserWithFewPermissions(t *testing.T) {
	c := newPlayedCluster(t)
	c.publish(webVersion1)
	c.install()
	c.publish(webVersion2)
	c.make(`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: reader}, rules: [
		{apiGroups: [satchel.dev], resources: [bundledeployments, bundlesources], verbs: [get]},
		{apiGroups: ["", apps, rbac.authorization.k8s.io], resources: [configmaps, services, deployments, roles, rolebindings], verbs: [get, list]}]}`)
	c.make(`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: readers}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}, subjects: [{kind: User, name: reader}]}`)
	got := c.Eventually("you may not look at Secret", "plan", "podinfo", "--as", "reader", "--fields") // rights come with a delay
	c.Want(got, kit.ExitError, "you may not look at Secret", "not tried: you may not try it", `.data.color: "red" -> "blue"`,
		"the permissions of ServiceAccount "+c.Namespace+"/installer were not checked: with --as no other user can be impersonated",
		"whether this is the cluster that the objects are on was not checked")
	c.Want(c.Satchel("plan", "podinfo", "-o", "diff", "--as", "reader"), kit.ExitError, "-  color: red\n+  color: blue\n")
	c.Want(c.Satchel("plan", "podinfo", "--as", "unprivileged"), kit.ExitError, "you may not get bundledeployments")
}

// All violations of the plan are listed at once.
func TestPlanThatIsRefused(t *testing.T) {
	c := newPlayedCluster(t)
	c.make(`{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}`)
	c.publish(webVersion1 + `
---
apiVersion: example.org/v1
kind: Unheard
metadata: {name: x}
---
apiVersion: v1
kind: Namespace
metadata: {name: ` + c.Namespace + `-new}
`)
	c.Want(c.Satchel("plan", "podinfo"), kit.ExitError, "Refused, so nothing would be changed:", "ConfigMap "+c.Namespace+"/settings", "Unheard",
		"ServiceAccount "+c.Namespace+"/installer lacks permissions:", "namespaces")
	c.Want(c.Satchel("plan", "podinfo", "--path", "x", "--image", "y"), kit.ExitError, "none of the others can be")
	c.Want(c.Satchel("plan", "podinfo", "--path", ""), kit.ExitError, "--path is empty")
	c.Want(c.Satchel("plan", "podinfo", "-o", "diff", "--revision", "v0"), kit.ExitError, "history")
	c.Want(c.Satchel("plan", "podinfo", "--path", t.TempDir()+"/none"), kit.ExitError, "opening the folder")
}

func TestHostilePlan(t *testing.T) {
	c := newPlayedCluster(t)
	bad := quoted(t, "a"+steering+"\nb")
	c.publish("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {note: " + bad + "}}\ndata: {k: " + bad + "}\n")
	for _, args := range [][]string{{"plan", "podinfo", "--fields"}, {"plan", "podinfo", "-o", "json"}, {"plan", "podinfo", "-o", "diff"}, {"plan", "podinfo", "-o", "yaml"}} {
		got := c.Satchel(args...)
		if odd := hiddenIn(got.Out) + hiddenIn(got.Err); got.Code != kit.ExitError || odd != "" {
			t.Errorf("%v: %s: %s", args, odd, got)
		}
	}
	// A value that YAML permits is sent to the cluster.
	c.publish("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: \"a\\u202e\\u2066\\u3164\\nb\"}\n")
	c.install()
	c.merge("v1", "ConfigMap", "a", `{"data": {"k": "`+strings.Trim(quoted(t, "b\u202e"+"c"), `"`)+`"}}`)
	for _, args := range [][]string{{"plan", "podinfo", "--fields"}, {"plan", "podinfo", "-o", "yaml"}, {"plan", "podinfo", "-o", "diff"}} {
		got := c.Satchel(args...)
		if odd := hiddenIn(got.Out) + hiddenIn(got.Err); got.Code != kit.ExitNo || odd != "" {
			t.Errorf("%v: %s: %s", args, odd, got)
		}
	}
}

// TestF54PlanOfLinks: where a file of the bundle became a link, the plan says so, and that what was in it is held.
func TestF54PlanOfLinks(t *testing.T) {
	c := newPlayedCluster(t)
	c.publish(webVersion1)
	c.install()
	dir := folderOf(t, webVersion1)
	manifests := filepath.Join(dir, "manifests")
	err := os.Rename(filepath.Join(manifests, "all.yaml"), filepath.Join(dir, "all.yaml"))
	if err == nil {
		err = os.Symlink("../all.yaml", filepath.Join(manifests, "all.yaml"))
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(manifests, "other.yaml"), []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	v := c.planned(kit.ExitNo, "--path", manifests)
	for _, o := range v.Objects {
		if o.Verb == preview.VerbDelete {
			t.Errorf("%s %s is deleted", o.Kind, o.Name)
		}
	}
	if !strings.Contains(v.Held, `links are not followed and missing from the artifact: "all.yaml"`) || !strings.Contains(strings.Join(v.Warnings, "\n"), `"all.yaml" is a symbolic link`) {
		t.Errorf("held %q, warnings %q", v.Held, v.Warnings)
	}
}
