// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/cli/tree"
)

// leaf is an object of a tree.
func leaf(kind, name, state, reason string, owned ...*tree.Node) *tree.Node {
	created := ago(3 * time.Hour)
	group, kind, _ := strings.Cut(kind, "/")
	return &tree.Node{Group: group, Kind: kind, Namespace: "demo", Name: name, Health: state, Reason: reason,
		Created: &created, Owned: owned, UID: types.UID(kind + name)}
}

// aTree is a tree with all fields set.
func aTree() tree.Tree {
	t := tree.NewTree(aDeployment(with(no("Ready", v1alpha1.ReasonHealthFailed, "1 of 31 objects is not healthy"))))
	for i := range 25 {
		t.Objects = append(t.Objects, leaf("/ConfigMap", fmt.Sprintf("c%02d", i), tree.HealthyWord, ""))
	}
	t.Objects[3].Health, t.Objects[3].Reason, t.Objects[3].Created = "Missing", "it does not exist", nil
	t.Objects = append(t.Objects,
		leaf("apps/Deployment", "web", "InProgress", "0 of 1 replicas are available",
			leaf("apps/ReplicaSet", "web-1", "InProgress", "Available: 0/1", leaf("/Pod", "web-1-a", "Failed", "container main cannot pull image \"x\"\nsecond line"))),
		leaf("/Secret", "evil"+steering, "Unknown", "you may not get it "+steering))
	return t
}

func TestTreeOutput(t *testing.T) {
	for name, o := range map[string]tree.Options{"table": {Output: printer.OutputTable}, "wide": {Output: printer.OutputWide}, "all": {Output: printer.OutputTable, All: true}} {
		text := aTree().Print(printer.Style{}, noon, o)
		golden(t, "tree/"+name, text)
		if odd := hiddenIn(text); odd != "" {
			t.Errorf("%s: %s", name, odd)
		}
	}
	before, after := aTree(), aTree()
	after.Objects[0].Health = "Terminating"
	after.Objects[3].Health, after.Objects[3].Reason = tree.HealthyWord, ""
	after.Objects = append(after.Objects[:4], after.Objects[5:]...)
	after.Objects = append(after.Objects, leaf("/Pod", "new"+steering, "InProgress", steering))
	after.Revision, after.State, after.Message = revisionA, "in progress", ""
	var lines []string
	for _, c := range tree.Happenings(before, after, noon) {
		lines = append(lines, c.Line(printer.Style{}))
	}
	text := strings.Join(lines, "\n") + "\n"
	golden(t, "tree/watch", text)
	if odd := hiddenIn(text); odd != "" {
		t.Error(odd)
	}
	if got := tree.Happenings(before, before, noon); got != nil {
		t.Errorf("nothing happened, and it says %v", got)
	}
}

// TestTreeOfMany bounds what is shown of a large deployment, and the time that takes.
func TestTreeOfMany(t *testing.T) {
	many := tree.NewTree(aDeployment())
	for i := range 20_000 {
		many.Objects = append(many.Objects, leaf("/ConfigMap", fmt.Sprint("c", i), tree.HealthyWord, ""))
	}
	many.Objects[19_000].Health = "Missing"
	began := time.Now()
	text := many.Print(printer.Style{}, noon, tree.Options{Output: printer.OutputTable})
	if lines := strings.Count(text, "\n"); lines != 2+tree.MostAlike+2 || !strings.Contains(text, "… and 19979 more ConfigMap of demo") || !strings.Contains(text, "c19000") {
		t.Errorf("%d lines:\n%.3000s", lines, text)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it takes %s", took)
	}
}

func TestTreeOfCluster(t *testing.T) {
	c := newTestCluster(t)
	objects := []*unstructured.Unstructured{
		c.object("app", web("web", "")), c.object("app", web("crashing", "controlplane.satchel.dev/pod: crash")),
		c.object("", "{apiVersion: v1, kind: ConfigMap, metadata: {name: no-labels}}"),
		c.missing("v1", "Secret", "gone"), c.missing("example.org/v1", "Widget", "unserved"),
	}
	for i := range 5 {
		objects = append(objects, c.object("app", fmt.Sprintf("{apiVersion: v1, kind: ServiceAccount, metadata: {name: many-%d}}", i)))
	}
	parent := aSource(func(s *v1alpha1.BundleSource) { s.Name = "parent" })
	c.Create(parent)
	objects = append(objects, c.missing("satchel.dev/v1alpha1", "BundleSource", "parent"), c.missing("v1", "ServiceAccount", "many-gone"))
	child := &unstructured.Unstructured{}
	child.SetAPIVersion("v1")
	child.SetKind("Service")
	child.SetNamespace(c.Namespace)
	child.SetName("child")
	child.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "satchel.dev/v1alpha1", Kind: "BundleSource", Name: "parent", UID: parent.GetUID()}})
	child.Object["spec"] = map[string]any{"ports": []any{map[string]any{"port": int64(80)}}}
	if err := c.AnyClient().Create(t.Context(), child); err != nil {
		t.Fatal(err)
	}
	c.Create(aDeployment(called("app"), lists(t, objects...)))

	got := c.Eventually("keeps crashing with exit code 1", "tree", "app")
	c.Want(got, kit.ExitOK, "BundleDeployment "+c.Namespace+"/app", "     └─ Pod "+c.Namespace+"/web-", "Secret "+c.Namespace+"/gone", "it does not exist",
		"Widget "+c.Namespace+"/unserved", "the cluster does not serve its kind", "ConfigMap "+c.Namespace+"/no-labels", "many-gone", "└─ Service "+c.Namespace+"/child")
	if got.Err != "" {
		t.Errorf("something is omitted: %s", got.Err)
	}
	var found tree.Tree
	if got := c.Satchel("tree", "app", "-o", "json"); json.Unmarshal([]byte(got.Out), &found) != nil {
		t.Fatalf("no JSON: %s", got)
	}
	states := map[string]string{}
	found.Walk(func(n *tree.Node) { states[n.Kind+" "+strings.SplitN(n.Name, "-", 2)[0]] += n.Health + " " })
	want := map[string]string{"ServiceAccount many": "Healthy Healthy Healthy Healthy Healthy Missing ", "ConfigMap no": "Healthy ", "Secret gone": "Missing ",
		"Widget unserved": "Missing ", "Deployment web": "Healthy ", "ReplicaSet web": "Healthy ", "Pod web": "Healthy ", "Pod crashing": "Failed ",
		"ReplicaSet crashing": "InProgress ", "Deployment crashing": "InProgress ", "BundleSource parent": "Healthy ", "Service child": "Healthy "}
	if diff := cmp.Diff(want, states); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := c.Satchel("tree", "app", "-o", "name"); !strings.Contains(got.Out, "deployment.apps/web\nreplicaset.apps/web-") || !strings.Contains(got.Out, "\npod/web-") {
		t.Errorf("got %s", got)
	}
	c.partlyForbidden()
	c.followed()
}

// partlyForbidden asks as a user who may only read the deployment and Deployments.
func (c testCluster) partlyForbidden() {
	c.T.Helper()
	c.object("", `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: some}, rules: [
		{apiGroups: [satchel.dev], resources: [bundledeployments], verbs: [get]}, {apiGroups: [apps], resources: [deployments, replicasets], verbs: [get, list]}]}`)
	c.object("", `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: some}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: some}, subjects: [{kind: User, name: reader}]}`)
	got := c.Eventually("ReplicaSet "+c.Namespace+"/web-", "tree", "app", "--as", "reader")
	c.Want(got, kit.ExitOK, `Not shown: pods in the namespace "`+c.Namespace+`": you may not list them; ask an administrator for that permission`, "you may not get it", "Deployment "+c.Namespace+"/web")
	if strings.Count(got.Err, "pods in the namespace") != 1 {
		c.T.Errorf("more than one line: %s", got.Err)
	}
}

// followed changes the cluster while tree -w runs.
func (c testCluster) followed() {
	c.T.Helper()
	f := c.Follow("tree", "app", "-w")
	f.Until("ConfigMap " + c.Namespace + "/no-labels")
	config := c.missing("v1", "ConfigMap", "no-labels")
	if err := c.AnyClient().Delete(c.T.Context(), config); err != nil {
		c.T.Fatal(err)
	}
	f.Until("ConfigMap " + c.Namespace + "/no-labels  Healthy → Missing  it does not exist\n")
	f.Interrupt()
	gone := c.Follow("tree", "app", "-w")
	gone.Until("Deployment " + c.Namespace + "/web")
	d := aDeployment(called("app"))
	d.Namespace = c.Namespace
	if err := c.Client.Delete(c.T.Context(), d); err != nil {
		c.T.Fatal(err)
	}
	select {
	case code := <-gone.Code:
		if code != kit.ExitOK || !strings.Contains(gone.Err.String(), "The BundleDeployment app is gone.") {
			c.T.Errorf("exit %d: %s", code, gone.Err)
		}
	case <-time.After(time.Minute):
		c.T.Error("it follows a deployment that is gone")
	}
}

// TestTreeElsewhere lists objects on a remote cluster without reading them.
func TestTreeElsewhere(t *testing.T) {
	c := newTestCluster(t)
	c.Create(aDeployment(called("far"), lists(t, c.missing("v1", "ConfigMap", "there")), func(d *v1alpha1.BundleDeployment) {
		d.Spec.Target.ClusterReference = v1alpha1.ClusterReference{KubeConfig: v1alpha1.KubeConfigReference{SecretRef: v1alpha1.KubeConfigSecretReference{Name: "prod"}}}
	}))
	c.Want(c.Satchel("tree", "far"), kit.ExitOK, "ConfigMap "+c.Namespace+"/there     Unknown", "Not shown: the state of its 1 object: they are on the cluster of the Secret prod\n")
	c.Want(c.Satchel("tree", "far", "-w", "-o", "json"), kit.ExitError, "-w writes lines for people: omit it or -o json")
	c.Want(c.Satchel("tree", "source/far"), kit.ExitError, "tree is about BundleDeployments, not about a BundleSource")
}
