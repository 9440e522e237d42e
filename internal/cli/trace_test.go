// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/cli/trace"
)

func aTrace() trace.Traced {
	return trace.Traced{
		Object:  trace.Link{Kind: "Pod", Namespace: "demo", Name: "web-1-a"},
		Owners:  []trace.Link{{Group: "apps", Kind: "ReplicaSet", Namespace: "demo", Name: "web-1"}, {Group: "apps", Kind: "Deployment", Namespace: "demo", Name: "web"}},
		Verdict: trace.ListedVerdict, Explanation: "the inventory of BundleDeployment demo/podinfo lists Deployment.apps demo/web",
		Deployment: trace.NewTraceDeployment(aDeployment(operator)),
		Source: &trace.Source{Kind: "BundleSource", Namespace: "demo", Name: "podinfo", Revision: revisionB, Current: true, Upstreams: []trace.Upstream{
			{From: "image example.org/podinfo:v1.3.0", Reference: "v1.3.0", Digest: digestA, Signer: "key sha256:0123 of Secret keys", Demanded: true},
			{From: "archive https://example.org/a.tgz", Destination: "web", Digest: digestB},
		}},
	}
}

func TestTraceOutput(t *testing.T) {
	moved, foreign, evil := aTrace(), aTrace(), aTrace()
	moved.Source.Current, moved.Notes = false, []string{"the source publishes revision v2 now, so the upstream digest and the signer of the applied revision are unknown"}
	moved.Source.Upstreams = []trace.Upstream{{From: "image example.org/podinfo:v1.3.0", Demanded: true}}
	foreign.Deployment, foreign.Source, foreign.Verdict, foreign.Explanation = nil, nil, trace.ForeignVerdict, "Deployment.apps demo/web has no owner, and no inventory that you may read lists it"
	bad := "a" + steering + "\nb"
	evil.Object.Name, evil.Owners[0].Name, evil.Explanation, evil.Notes = bad, bad, bad, []string{bad}
	evil.Deployment.Revision, evil.Deployment.Digest, evil.Deployment.Package = bad, bad, &v1alpha1.PackageStatus{Name: bad}
	evil.Source.Kind, evil.Source.Upstreams[0] = bad, trace.Upstream{From: bad, Destination: bad, Reference: bad, Digest: bad, Signer: bad}
	for name, found := range map[string]trace.Traced{"listed": aTrace(), "moved": moved, "foreign": foreign, "hostile": evil} {
		text := found.Print(printer.Style{}, noon)
		golden(t, "trace/"+name, text)
		if odd := hiddenIn(text); odd != "" {
			t.Errorf("%s: %s", name, odd)
		}
	}
}

// orphaned annotates an object as orphaned.
func orphaned(text string) string {
	return strings.Replace(text, "metadata: {", `metadata: {annotations: {satchel.dev/orphaned: other/former}, `, 1)
}

func TestTraceOfCluster(t *testing.T) {
	c := newTestCluster(t)
	deployment := c.object("app", web("web", ""))
	bare := c.object("", "{apiVersion: v1, kind: ConfigMap, metadata: {name: bare}}")
	stolen := c.object("other", "{apiVersion: v1, kind: ConfigMap, metadata: {name: stolen}}")
	c.object("app", "{apiVersion: v1, kind: ConfigMap, metadata: {name: forged}}")
	c.object("never-was", "{apiVersion: v1, kind: ConfigMap, metadata: {name: abandoned}}")
	c.object("far", "{apiVersion: v1, kind: ConfigMap, metadata: {name: far}}")
	c.object("", orphaned("{apiVersion: v1, kind: ConfigMap, metadata: {name: orphan}}"))
	c.object("", "{apiVersion: v1, kind: ConfigMap, metadata: {name: foreign}}")
	// Without the finalizer the garbage collector would delete it.
	lonely := c.object("", "{apiVersion: v1, kind: ConfigMap, metadata: {name: lonely, finalizers: [example.org/keep], ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-0, uid: '1', blockOwnerDeletion: false}]}}")
	source := aSource(func(s *v1alpha1.BundleSource) {
		s.Name = "app"
		s.Status.Resolved[0].VerifiedBy = "key sha256:0123"
	})
	c.Create(source)
	c.Create(aDeployment(called("app"), lists(t, deployment, bare, stolen)))
	c.Create(aDeployment(called("other")))
	c.Create(aDeployment(called("far"), lists(t, c.missing("v1", "ConfigMap", "far")), func(d *v1alpha1.BundleDeployment) {
		d.Spec.Target.ClusterReference = v1alpha1.ClusterReference{KubeConfig: v1alpha1.KubeConfigReference{SecretRef: v1alpha1.KubeConfigSecretReference{Name: "prod"}}}
	}))

	pod := strings.TrimSpace(c.Eventually("web-", "__complete", "trace", "pod/").Out)
	pod, _, _ = strings.Cut(pod, "\n")
	app := "installed by BundleDeployment " + c.Namespace + "/app: Ready\n"
	for name, tc := range map[string]struct {
		reason string
		args   []string
		code   int
		want   []string
	}{
		"pod":       {"down from the Pod to the signer", []string{pod}, kit.ExitOK, []string{"├─ owned by ReplicaSet.apps ", "├─ owned by Deployment.apps ", app, digestB, "upstream  v1.3.0 → " + digestA, "signer    key sha256:0123\n"}},
		"kind name": {"as kubectl has it", []string{"deploy", "web"}, kit.ExitOK, []string{app}},
		"group":     {"with a group", []string{"Deployment.apps/web"}, kit.ExitOK, []string{app}},
		"no labels": {"the inventory decides where labels are stripped", []string{"cm/bare"}, kit.ExitOK, []string{app}},
		"stolen":    {"labels of another do not count", []string{"cm/stolen"}, kit.ExitOK, []string{app, "Note: the labels of ConfigMap " + c.Namespace + "/stolen name BundleDeployment " + c.Namespace + "/other, and its inventory does not list the object"}},
		"forged":    {"labels alone are nothing", []string{"cm/forged"}, kit.ExitNo, []string{"and its inventory does not list the object: they are copied or forged"}},
		"abandoned": {"the deployment is gone", []string{"cm/abandoned"}, kit.ExitNo, []string{"never-was, which does not exist here"}},
		"far":       {"an inventory of another cluster", []string{"cm/far"}, kit.ExitNo, []string{"which installs on another cluster"}},
		"orphan":    {"left behind", []string{"cm/orphan"}, kit.ExitNo, []string{"was orphaned by BundleDeployment other/former"}},
		"foreign":   {"not Satchel's", []string{"cm/foreign"}, kit.ExitNo, []string{"no inventory that you may read lists it, and it has no owner"}},
		"itself":    {"a deployment", []string{"bdep/app"}, kit.ExitOK, []string{app, "no other installed it"}},
		"no kind":   {"what there is", []string{"widget/x"}, kit.ExitError, []string{`the cluster knows no kind "widget"`}},
		"no object": {"what was meant", []string{"deployment/app"}, kit.ExitError, []string{`there is no Deployment "app" in the namespace "` + c.Namespace + `"; for a BundleDeployment write bundledeployment/app`}},
		"no name":   {"the usage", []string{"pod"}, kit.ExitError, []string{"trace needs one object as KIND/NAME, got 1: pod"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := c
			c.T = t
			c.Want(c.Satchel(append([]string{"trace"}, tc.args...)...), tc.code, tc.want...)
			if t.Failed() {
				t.Log(tc.reason)
			}
		})
	}
	c.Want(c.Satchel("trace", "cm/lonely"), kit.ExitNo, "its owner ReplicaSet.apps "+c.Namespace+"/web-0 is gone")
	if err := c.AnyClient().Patch(t.Context(), lonely, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	c.Want(c.Satchel("trace", "cm/bare", "-o", "name"), kit.ExitOK, "bundledeployment.satchel.dev/app\n")
	var found trace.Traced
	if got := c.Satchel("trace", pod, "-o", "json"); json.Unmarshal([]byte(got.Out), &found) != nil || found.Verdict != trace.ListedVerdict || found.Source.Upstreams[0].Signer != "key sha256:0123" {
		t.Errorf("got %s", got)
	}
	c.tracedAfterwards(pod)
	c.tracedByFew()
}

// tracedAfterwards traces the applied revision when the source has a newer one: the history has its origin and signer.
func (c testCluster) tracedAfterwards(pod string) {
	c.T.Helper()
	d := aDeployment()
	d.ObjectMeta = metav1.ObjectMeta{Namespace: c.Namespace, Name: "app"}
	if err := c.Client.Get(c.T.Context(), client.ObjectKeyFromObject(d), d); err != nil {
		c.T.Fatal(err)
	}
	d.Status.Applied.Revision = revisionA
	if err := c.Client.Status().Update(c.T.Context(), d); err != nil {
		c.T.Fatal(err)
	}
	c.Want(c.Satchel("trace", pod), kit.ExitOK, "Note: the source publishes revision "+revisionB+" now, so the upstream digest and the signer of the applied revision are unknown")
	d.Status.History = []v1alpha1.RevisionRecord{{Revision: revisionA, Digest: digestB, StartTime: metav1.Now(),
		Sources: []v1alpha1.RevisionOrigin{{Image: "example.org/before", Reference: "v1.2.0", Digest: digestA, VerifiedBy: "key of before"}}}}
	if err := c.Client.Status().Update(c.T.Context(), d); err != nil {
		c.T.Fatal(err)
	}
	c.Want(c.Satchel("trace", pod), kit.ExitOK, "artifact  "+digestB, "image example.org/before\n", "upstream  v1.2.0 → "+digestA, "signer    key of before\n",
		"the upstream data is that of the applied one")
}

// tracedByFew traces as a user who may only read ConfigMaps.
func (c testCluster) tracedByFew() {
	c.T.Helper()
	c.object("", `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: few}, rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]}`)
	c.object("", `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: few}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: few}, subjects: [{kind: User, name: few}]}`)
	got := c.Eventually("Not shown", "trace", "cm/forged", "--as", "few")
	c.Want(got, kit.ExitNo, "Not shown: bundledeployments.satchel.dev in the namespace", "Not shown: bundledeployments.satchel.dev of the cluster: you may not list them", "which does not exist here or may not be read by you")
	c.Want(c.Satchel("trace", "secret/x", "--as", "few"), kit.ExitError, `you may not get secrets in the namespace "`+c.Namespace+`": ask an administrator`)
}

// TestClaims checks that metadata cannot change the path of a request.
func TestClaims(t *testing.T) {
	for name, tc := range map[string]struct {
		labels  map[string]string
		manager string
		want    int
	}{
		"labels":     {labels: inventory.Owner{Namespace: "a", Name: "b"}.Labels(), want: 1},
		"half":       {labels: map[string]string{inventory.LabelDeployment: "b"}},
		"dots":       {labels: inventory.Owner{Namespace: "..", Name: "b"}.Labels()},
		"manager":    {manager: "satchel/a/b", want: 1},
		"both":       {labels: inventory.Owner{Namespace: "a", Name: "b"}.Labels(), manager: "satchel/a/b", want: 1},
		"slashes":    {manager: "satchel/a/b/c"},
		"percent":    {manager: "satchel/a/%2e%2e"},
		"not ours":   {manager: "kubectl"},
		"hash":       {manager: "satchel/0123"},
		"other both": {labels: inventory.Owner{Namespace: "a", Name: "b"}.Labels(), manager: "satchel/a/c", want: 2},
	} {
		o := &unstructured.Unstructured{Object: map[string]any{}}
		o.SetLabels(tc.labels)
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: tc.manager}})
		if got := trace.ClaimsOf(o); len(got) != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestOwnersWithOddNames checks that no request is sent for a name that would change its path.
func TestOwnersWithOddNames(t *testing.T) {
	for _, name := range []string{"../../x", "", "a/b", "%2e"} {
		c := &trace.Climber{}
		mapping, _, err := c.Owner(t.Context(), "demo", metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name})
		if mapping != nil || err != nil || c.Result.Verdict != trace.BrokenVerdict || len(c.Links) != 1 {
			t.Errorf("%q: %v %v %+v", name, mapping, err, c.Result)
		}
	}
}
