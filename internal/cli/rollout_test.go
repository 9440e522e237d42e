// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/cli/rollout"
	"github.com/satchel-dev/satchel/internal/rollout/revision"
	"github.com/satchel-dev/satchel/internal/view/rollouts"
	"github.com/satchel-dev/satchel/tests/clirig"
)

const template = `{"serviceAccountName": "deployer", "path": "overlays/$(region)", "helm": {"values": {"replicas": 2}}}`

// aRollout is in the middle of its second wave.
func aRollout(edit ...func(*v1alpha1.BundleRollout)) *v1alpha1.BundleRollout {
	started, soaked, first := ago(134*time.Minute), ago(70*time.Minute), ago(130*time.Minute)
	o := &v1alpha1.BundleRollout{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "fleet", Generation: 1, CreationTimestamp: ago(25 * time.Hour)},
		Spec: v1alpha1.BundleRolloutSpec{
			SourceRef: v1alpha1.RolloutSourceReference{Kind: "BundleSource", Name: "podinfo"},
			Clusters: []v1alpha1.RolloutClusters{
				{Cluster: &v1alpha1.RolloutCluster{Name: "dc1", Labels: map[string]string{"ring": "canary"}}},
				{KubeConfigSecrets: &v1alpha1.KubeConfigSecretClusters{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"fleet": "edge"}}}},
			},
			Template:  v1alpha1.RolloutTemplate{Spec: apiextensionsv1.JSON{Raw: []byte(template)}},
			Variables: []v1alpha1.RolloutVariable{{Name: "region", Label: "region"}},
			Strategy: v1alpha1.RolloutStrategy{Waves: []v1alpha1.RolloutWave{
				{Name: "canary", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"ring": "canary"}}, Soak: v1alpha1.Duration{Duration: time.Hour}},
				{Name: "prod", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"ring": "prod"}}, MaxConcurrency: new(intstr.FromString("20%")), MaxFailures: new(intstr.FromInt32(1))},
				{Name: "rest", Selector: metav1.LabelSelector{}},
			}},
			DeletionPolicy: v1alpha1.DeletionOrphan,
		},
		Status: v1alpha1.BundleRolloutStatus{
			ObservedGeneration: 1, Run: 2,
			Conditions: []metav1.Condition{
				yes(meta.ReadyCondition, "2 of 3 waves"), no(v1alpha1.RolledOutCondition, v1alpha1.ReasonUpdating, "wave 2/3 prod: 10/18"),
			},
			UpdateRevision:  &v1alpha1.RolloutRevision{Name: "7f3a91c2de", Digest: "sha256:7f3a91c2de" + strings.Repeat("0", 54), Revision: "v1.2.3@sha256:" + strings.Repeat("a", 64), StartTime: &started},
			CurrentRevision: &v1alpha1.RolloutRevision{Name: "1c09e4b7aa", Digest: "sha256:1c09e4b7aa" + strings.Repeat("0", 54), Revision: "v1.2.2@sha256:" + strings.Repeat("b", 64)},
			Clusters:        &v1alpha1.RolloutClusterCounts{Total: 22, Updated: 12, Ready: 20, Updating: 2, Failed: 1, Unreachable: 1, Pending: 6},
			Progress:        "12/22", Wave: "2/3 prod",
			Waves: []v1alpha1.RolloutWaveStatus{
				{Name: "canary", State: v1alpha1.WaveComplete, Total: 2, Updated: 2, StartTime: &started, SuccessTime: &first, CompletionTime: &soaked, Approval: "canary-7f3a"},
				{Name: "prod", State: v1alpha1.WaveOpen, Total: 18, Updated: 10, Updating: 2, Failed: 1, Unreachable: 1, StartTime: &soaked, WaitsFor: v1alpha1.ReasonUpdating},
				{Name: "rest", State: v1alpha1.WavePending, Total: 2},
			},
			Worst: []v1alpha1.RolloutClusterProblem{
				{Cluster: "eu-11", Wave: "prod", State: "Unreachable", Reason: v1alpha1.ReasonClusterUnreachable, Message: "no answer in time", StartTime: new(ago(150 * time.Hour))},
				{Cluster: "eu-07", Wave: "prod", State: "Failed", Reason: v1alpha1.ReasonHealthFailed, Message: "Deployment shop/web: 0 of 3 Pods ready: ImagePullBackOff", StartTime: new(ago(6 * time.Minute))},
			},
			History: []v1alpha1.RolloutRecord{{
				Name: "1c09e4b7aa", Revision: "v1.2.2@sha256:" + strings.Repeat("b", 64), Outcome: v1alpha1.RolloutComplete, Updated: 22,
				StartTime: new(ago(100 * time.Hour)), CompletionTime: new(ago(91 * time.Hour)), Approvals: []v1alpha1.RolloutApproval{{Wave: "prod", Name: "prod-1c09"}},
			}},
		},
	}
	for _, change := range edit {
		change(o)
	}
	return o
}

// because sets the reason of RolledOut, and what the open wave waits for.
func because(reason, message string, until ...metav1.Time) func(*v1alpha1.BundleRollout) {
	return func(o *v1alpha1.BundleRollout) {
		o.Status.Conditions = replaced(o.Status.Conditions, []metav1.Condition{no(v1alpha1.RolledOutCondition, reason, message)})
		wave := &o.Status.Waves[1]
		wave.WaitsFor = reason
		if len(until) > 0 {
			wave.EndTime = &until[0]
		}
	}
}

func finished(o *v1alpha1.BundleRollout) {
	o.Status.Conditions = replaced(o.Status.Conditions, []metav1.Condition{yes(v1alpha1.RolledOutCondition, "all waves are complete")})
	o.Status.CurrentRevision = o.Status.UpdateRevision.DeepCopy()
	o.Status.Worst = nil
	o.Status.Clusters = &v1alpha1.RolloutClusterCounts{Total: 22, Updated: 22, Ready: 22}
	for i := range o.Status.Waves {
		wave := &o.Status.Waves[i]
		wave.State = v1alpha1.WaveComplete
		wave.Updated = wave.Total
		wave.Updating, wave.Failed, wave.Unreachable, wave.WaitsFor = 0, 0, 0, ""
	}
}

func TestRolloutStatusText(t *testing.T) {
	later := metav1.NewTime(noon.Add(34 * time.Minute))
	stopped := because(v1alpha1.ReasonMaxFailuresExceeded, "wave prod: 2 clusters failed, and maxFailures is 1")
	for name, o := range map[string]*v1alpha1.BundleRollout{
		"updating": aRollout(), "complete": aRollout(finished),
		"soaking": aRollout(because(v1alpha1.ReasonSoaking, "", later), func(o *v1alpha1.BundleRollout) { o.Status.Waves[1].State = v1alpha1.WaveSucceeded }),
		"approval": aRollout(because(v1alpha1.ReasonApprovalPending, "wave prod waits for an approval"), func(o *v1alpha1.BundleRollout) {
			o.Status.Waves[1].Plan = "sha256:5f70bf18a086" + strings.Repeat("0", 52)
		}),
		"window": aRollout(because(v1alpha1.ReasonOutsideWindow, "wave prod waits for a window", later)),
		"halted": aRollout(stopped), "suspended": aRollout(because(v1alpha1.ReasonSuspended, "spec.suspend"), func(o *v1alpha1.BundleRollout) { o.Spec.Suspend = true }),
		"returning": aRollout(because(v1alpha1.ReasonRollingBack, ""), func(o *v1alpha1.BundleRollout) { o.Status.RejectedRevision = "7f3a91c2de" }),
		"rejected": aRollout(because(v1alpha1.ReasonRevisionRejected, "revision 7f3a91c2de is rejected"), func(o *v1alpha1.BundleRollout) {
			o.Status.RejectedRevision = "7f3a91c2de"
		}),
		"rebuilt": aRollout(because(v1alpha1.ReasonHeld, "clusters wait for a user"), func(o *v1alpha1.BundleRollout) {
			o.Status.Clusters.Held = 1
			o.Status.Worst[0].State, o.Status.Worst[0].Reason = "Held", v1alpha1.ReasonTargetChanged
			o.Status.Worst[0].Message = "it was rebuilt, and nothing is changed on it: set spec.removal.whenClusterGone to Abandon"
		}),
		"unseen": {ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "fleet", Generation: 1}},
		"hostile": aRollout(func(o *v1alpha1.BundleRollout) {
			o.Status.Worst[0].Message = "\x1b[2Jgone\u202e"
			o.Status.Worst[1].Cluster = "eu\n-07"
		}),
	} {
		t.Run(name, func(t *testing.T) {
			golden(t, "rollout/status-"+name, rollout.PrintStatus(rollouts.New(o, noon), printer.Style{}, noon, "satchel"))
		})
	}
}

func TestRolloutOutcome(t *testing.T) {
	for reason, want := range map[string]rollouts.Outcome{
		v1alpha1.ReasonUpdating: rollouts.Moving, v1alpha1.ReasonSoaking: rollouts.Moving, v1alpha1.ReasonRollingBack: rollouts.Moving,
		v1alpha1.ReasonApprovalPending: rollouts.Standing, v1alpha1.ReasonMaxFailuresExceeded: rollouts.Standing, v1alpha1.ReasonSuspended: rollouts.Standing,
	} {
		if got := rollouts.New(aRollout(because(reason, "")), noon).Outcome; got != want {
			t.Errorf("%s: got %s, want %s", reason, got, want)
		}
	}
	unseen := aRollout(finished, func(o *v1alpha1.BundleRollout) { o.Generation = 2 })
	if got := rollouts.New(unseen, noon).Outcome; got != rollouts.Moving {
		t.Errorf("a status about an older spec: got %s, want %s", got, rollouts.Moving)
	}
}

// rolloutFixture stores a rollout that is in its second wave, with all that it consists of: its revisions, clusters and BundleDeployments.
func rolloutFixture(c testCluster) {
	c.T.Helper()
	every, err := client.New(c.CP.RESTConfig(), client.Options{Scheme: everyScheme()})
	if err != nil {
		c.T.Fatal(err)
	}
	spec := aRollout().Spec
	store := func(content string, sources []v1alpha1.Source) (name, digest string) {
		data := revision.Data{Content: content, Template: spec.Template, Variables: spec.Variables, Sources: sources}
		digest, err := data.Digest()
		if err != nil {
			c.T.Fatal(err)
		}
		text, err := data.Encode()
		if err != nil {
			c.T.Fatal(err)
		}
		name = revision.Name(digest)
		kept := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{
			Namespace: c.Namespace, Name: revision.SourceName("shop", name), Annotations: map[string]string{"satchel.dev/rollout-revision-digest": digest},
		}, Data: runtime.RawExtension{Raw: text}, Revision: 1}
		if err := every.Create(c.T.Context(), kept); err != nil {
			c.T.Fatal(err)
		}
		return name, digest
	}
	source := aSource()
	content := source.Status.Artifact.Revision[strings.LastIndexByte(source.Status.Artifact.Revision, '@')+1:]
	update, updateDigest := store(content, source.Spec.Sources)
	current, currentDigest := store("sha256:"+strings.Repeat("c", 64), nil)
	c.Create(source)
	c.Create(aRollout(func(o *v1alpha1.BundleRollout) {
		o.Status.UpdateRevision.Name, o.Status.UpdateRevision.Digest = update, updateDigest
		o.Status.CurrentRevision.Name, o.Status.CurrentRevision.Digest = current, currentDigest
		o.Status.History[0].Name = current
	}))
	for i := range 4 {
		labels := map[string]string{"fleet": "edge", "ring": "prod", "region": "eu"}
		if i == 3 {
			labels = map[string]string{"fleet": "edge"}
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: fmt.Sprintf("eu-%d", i), Labels: labels}}
		if err := every.Create(c.T.Context(), secret); err != nil {
			c.T.Fatal(err)
		}
	}
	child := func(cluster, revisionName, content string, outcome v1alpha1.Outcome) {
		c.Create(aDeployment(called("shop-"+cluster), func(d *v1alpha1.BundleDeployment) {
			d.Labels = map[string]string{v1alpha1.RolloutLabel: "shop", v1alpha1.ClusterLabel: cluster}
			if strings.HasPrefix(cluster, "eu-") {
				d.Spec.Target.ClusterReference = v1alpha1.ClusterReference{KubeConfig: v1alpha1.KubeConfigReference{SecretRef: v1alpha1.KubeConfigSecretReference{Name: cluster}}}
			}
			d.Annotations = map[string]string{v1alpha1.RolloutRevisionAnnotation: revisionName, v1alpha1.RolloutSpecAnnotation: "v1:x", v1alpha1.RolloutStartAnnotation: "1"}
			d.Status.History = []v1alpha1.RevisionRecord{{Revision: "v1@" + content, Outcome: outcome, Generation: 1, StartTime: ago(time.Hour)}}
			if outcome == v1alpha1.OutcomeFailed {
				with(no(meta.ReadyCondition, v1alpha1.ReasonHealthFailed, "Deployment shop/web: no image"), yes("Stalled", "no image"))(d)
			}
		}))
	}
	child("dc1", update, content, v1alpha1.OutcomeHealthy)
	child("eu-0", update, content, v1alpha1.OutcomeFailed)
	child("eu-1", current, "sha256:"+strings.Repeat("c", 64), v1alpha1.OutcomeHealthy)
	child("gone", current, "sha256:"+strings.Repeat("c", 64), v1alpha1.OutcomeHealthy)
}

func everyScheme() *runtime.Scheme {
	scheme := kit.NewScheme()
	_ = clientscheme.AddToScheme(scheme) // types that are compiled in
	return scheme
}

func TestRollout(t *testing.T) {
	c := newTestCluster(t)
	c.Want(c.Satchel("rollout", "status", "shop"), kit.ExitError, `there is no BundleRollout "shop"`)
	rolloutFixture(c)

	c.Want(c.Satchel("get", "rollouts"), kit.ExitOK, "WAVE", "UPDATED", "2/3 prod", "12/22")
	c.Want(c.Satchel("rollout", "status", "shop"), kit.ExitNo, "updating to v1.2.3", "go back")
	c.Want(c.Satchel("status", "rollout/shop"), kit.ExitNo, "updating to v1.2.3")
	c.Want(c.Satchel("rollout", "status", "shop", "-o", "json"), kit.ExitNo, `"outcome": "Moving"`)
	c.Want(c.Satchel("rollout", "history", "shop"), kit.ExitOK, "InProgress", "Complete", "prod: prod-1c09")
	c.Want(c.Satchel("events", "rollout/shop"), kit.ExitOK, "No events")
	c.Want(c.Satchel("export", "rollout/shop"), kit.ExitOK, "kind: BundleRollout")

	c.Want(c.Satchel("rollout", "clusters", "shop"), kit.ExitOK, "dc1", "canary   Updated", "eu-0", "prod     Failed", "eu-2", "prod     Pending", "gone", "Leaving")
	var list struct{ Clusters []rollouts.Cluster }
	got := c.Satchel("rollout", "clusters", "shop", "--state", "failed", "--wave", "prod", "-o", "json")
	if json.Unmarshal([]byte(got.Out), &list) != nil || len(list.Clusters) != 1 || list.Clusters[0].Name != "eu-0" {
		t.Errorf("failed clusters of the wave prod: %s", got)
	}
	c.Want(c.Satchel("rollout", "clusters", "shop", "--wave", "none"), kit.ExitError, `no wave "none"; it has: canary, prod, rest`)
	c.Want(c.Satchel("rollout", "clusters", "shop", "--state", "broken"), kit.ExitError, "is not one of: Starting")

	c.Want(c.Satchel("tree", "rollout/shop"), kit.ExitError, "use satchel rollout clusters shop")
	c.Want(c.Satchel("suspend", "rollout/shop"), kit.ExitError, "use satchel rollout suspend shop")
}

func TestRolloutPlanAndRender(t *testing.T) {
	c := newTestCluster(t)
	rolloutFixture(c)
	// eu-3 has no region, and the variable no default.
	c.Want(c.Satchel("rollout", "plan", "shop"), kit.ExitNo, "under way", "canary   1", "complete", "now          -      eu-1", "Cannot be updated: eu-3", "region")

	changed := aRollout(func(o *v1alpha1.BundleRollout) {
		o.Namespace = ""
		o.Status = v1alpha1.BundleRolloutStatus{}
		o.Spec.Template.Spec.Raw = []byte(strings.ReplaceAll(template, `"replicas": 2`, `"replicas": 3`))
		o.Spec.Variables[0].Default = new("us")
		o.Spec.Strategy.Waves[1].Approval = v1alpha1.WaveApprovalBefore
	})
	file := filepath.Join(t.TempDir(), "rollout.yaml")
	text, err := yaml.Marshal(map[string]any{"apiVersion": "satchel.dev/v1alpha1", "kind": "BundleRollout", "metadata": map[string]any{"name": "shop"}, "spec": changed.Spec})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append([]byte("kind: ConfigMap\nmetadata: {name: shop}\n---\n"), text...), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Want(c.Satchel("rollout", "plan", "shop", "-f", file), kit.ExitOK, "not started", "template.spec.helm.values.replicas: 2 → 3",
		"after canary, soak 1h, approval", "sha256:", "eu-1")
	c.Want(c.Satchel("rollout", "plan", "other", "-f", file), kit.ExitError, `holds no BundleRollout "other"`)

	folder := filepath.Join(t.TempDir(), "out")
	c.Want(c.Satchel("rollout", "render", "shop"), kit.ExitError, "add -o DIR")
	c.Want(c.Satchel("rollout", "render", "shop", "-o", folder), kit.ExitError, "cluster eu-3", "region")
	c.Want(c.Satchel("rollout", "render", "shop", "-f", file, "-o", folder), kit.ExitOK, "5 manifests written")
	rendered, err := os.ReadFile(filepath.Join(folder, "shop-eu-1.yaml"))
	if err != nil || !strings.Contains(string(rendered), "path: overlays/eu") || !strings.Contains(string(rendered), "replicas: 3") {
		t.Errorf("%v: %s", err, rendered)
	}
	if clirig.Admitted(t, string(rendered)) == 0 {
		t.Errorf("it is no BundleDeployment:\n%s", rendered)
	}
}

func (c testCluster) rollout(name string) *v1alpha1.BundleRollout {
	c.T.Helper()
	o := new(v1alpha1.BundleRollout)
	c.read(o, name)
	return o
}

func TestRolloutSteering(t *testing.T) {
	c := newTestCluster(t)
	c.Create(aRollout())
	c.Create(aRollout(func(o *v1alpha1.BundleRollout) { o.Name = "other" }))
	c.Want(c.Satchel("rollout", "suspend"), kit.ExitError, "needs names, or --all")
	c.Want(c.Satchel("rollout", "suspend", "shop", "--export"), kit.ExitOK, "kind: BundleRollout\n", "suspend: true")
	c.Want(c.Satchel("rollout", "suspend", "shop", "--dry-run"), kit.ExitOK, "suspended (dry run)")
	if c.rollout("shop").Spec.Suspend {
		t.Error("something was done by --export or --dry-run")
	}
	c.Want(c.Satchel("rollout", "suspend", "--all", "-A"), kit.ExitOK, "BundleRollout "+c.Namespace+"/shop: suspended\n  No further cluster is started.", "/other: suspended\n")
	c.Want(c.Satchel("rollout", "suspend", "shop", "-A"), kit.ExitError, "leave -A or the name out")
	if !c.rollout("shop").Spec.Suspend || !c.rollout("other").Spec.Suspend {
		t.Error("not all are suspended")
	}
	c.Want(c.Satchel("rollout", "suspend", "shop"), kit.ExitOK, "suspended already")
	c.Want(c.Satchel("rollout", "abort", "shop"), kit.ExitOK, "goes back to revision 1c09e4b7aa", "--follow")
	if o := c.rollout("shop"); o.Spec.Suspend || o.Spec.Revision != "1c09e4b7aa" {
		t.Errorf("after an abort: suspended %t, revision %q", o.Spec.Suspend, o.Spec.Revision)
	}
	c.Want(c.Satchel("rollout", "abort", "shop"), kit.ExitOK, "goes back to revision 1c09e4b7aa already")
	c.Want(c.Satchel("rollout", "resume", "shop"), kit.ExitOK, "is not suspended; it stays at revision 1c09e4b7aa")
	c.Want(c.Satchel("rollout", "resume", "shop", "--follow"), kit.ExitOK, "follows its source again")
	if got := c.rollout("shop").Spec.Revision; got != "" {
		t.Errorf("it does not follow its source: %q", got)
	}
	c.Want(c.Satchel("rollout", "retry", "shop"), kit.ExitOK, "a reconcile is requested")
	if c.rollout("shop").Annotations[meta.ReconcileRequestAnnotation] == "" {
		t.Error("no reconcile was requested")
	}

	delivered := c.rollout("other")
	delivered.Labels = map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}
	if err := c.Client.Update(t.Context(), delivered, client.FieldOwner("kustomize-controller")); err != nil {
		t.Fatal(err)
	}
	c.Want(c.Satchel("rollout", "resume", "other"), kit.ExitOK, "BundleRollout other: resumed") // a user suspended it
	delivered = c.rollout("other")
	delivered.Spec.Suspend = true
	if err := c.Client.Update(t.Context(), delivered, client.FieldOwner("kustomize-controller")); err != nil {
		t.Fatal(err)
	}
	c.Want(c.Satchel("rollout", "resume", "other"), kit.ExitError, "spec.suspend of BundleRollout "+c.Namespace+"/other is set by Flux Kustomization flux-system/apps, which would set it again: remove it there")
	c.Want(c.Satchel("rollout", "resume", "other", "--export"), kit.ExitOK, "suspend: null")
}

func TestRolloutApprove(t *testing.T) {
	c := newTestCluster(t)
	plan := "sha256:5f70bf18a086" + strings.Repeat("0", 52)
	c.Create(aRollout(because(v1alpha1.ReasonApprovalPending, "wave prod waits"), func(o *v1alpha1.BundleRollout) { o.Status.Waves[1].Plan = plan }))
	c.Want(c.Satchel("rollout", "approve", "shop"), kit.ExitError, "needs the names of a BundleRollout and of a wave")
	c.Want(c.Satchel("rollout", "approve", "shop", "nowhere"), kit.ExitError, `has no wave "nowhere"; it has: canary, prod, rest, removal`)
	c.Want(c.Satchel("rollout", "approve", "shop", "rest", "--yes"), kit.ExitNo, "waits for no approval now")
	c.Want(c.Satchel("rollout", "approve", "shop", "prod"), kit.ExitError, "cannot ask for confirmation without a terminal", "--plan "+plan)
	c.Want(c.Satchel("rollout", "approve", "shop", "prod", "--plan", "sha256:"+strings.Repeat("1", 64)), kit.ExitError, "waits for an approval of another plan by now")
	c.Want(c.Satchel("rollout", "approve", "shop", "prod", "--export", "--expires", "1h", "--approver", "ann"), kit.ExitOK, "rollout: shop", "plan: "+plan, "approver: ann", "expirationTime: ")

	c.Want(c.Satchel("rollout", "approve", "shop", "prod", "--dry-run"), kit.ExitOK, "10 of 18 clusters have it", "approves plan sha256:5f70bf18a086", "(dry run)")
	c.Want(c.Satchel("rollout", "approve", "shop", "prod", "--plan", plan, "--reason", "tested"), kit.ExitOK, "BundleApproval shop-prod-5f70bf18a086: approves plan")
	var approval v1alpha1.BundleApproval
	if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: c.Namespace, Name: "shop-prod-5f70bf18a086"}, &approval); err != nil {
		t.Fatal(err)
	}
	if approval.Spec.Rollout != "shop" || approval.Spec.Plan != plan || approval.Spec.Decision != v1alpha1.DecisionApprove || approval.Spec.Reason != "tested" {
		t.Errorf("got %+v", approval.Spec)
	}
	c.Want(c.Satchel("rollout", "approve", "shop", "prod", "--yes"), kit.ExitOK, "says so already")
	c.Want(c.Satchel("rollout", "approve", "shop", "prod", "--deny"), kit.ExitOK, "BundleApproval shop-prod-deny-5f70bf18a086: denies plan")
}

// TestR36Large prints the status of 5,000 clusters in 20 waves, and what would happen with them, within a second and 200 lines.
func TestR36Large(t *testing.T) {
	o := aRollout(func(o *v1alpha1.BundleRollout) {
		o.Status.Clusters = &v1alpha1.RolloutClusterCounts{Total: 5000, Updated: 1200, Ready: 4900, Updating: 100, Failed: 40, Unreachable: 60, Pending: 3600}
		o.Status.Progress = "1200/5000"
		for i := range 17 {
			name := fmt.Sprintf("wave-%02d", i)
			o.Spec.Strategy.Waves = append(o.Spec.Strategy.Waves, v1alpha1.RolloutWave{Name: name, Selector: metav1.LabelSelector{MatchLabels: map[string]string{"wave": name}}})
			o.Status.Waves = append(o.Status.Waves, v1alpha1.RolloutWaveStatus{Name: name, State: v1alpha1.WavePending, Total: 250})
		}
		for i := len(o.Status.Worst); i < v1alpha1.MaxWorst; i++ {
			o.Status.Worst = append(o.Status.Worst, v1alpha1.RolloutClusterProblem{
				Cluster: fmt.Sprintf("eu-%04d", i), Wave: "prod", State: "Failed", Reason: v1alpha1.ReasonHealthFailed, Message: strings.Repeat("x", v1alpha1.MaxWorstMessage), StartTime: new(ago(time.Hour)),
			})
		}
	})
	began := time.Now()
	text := rollout.PrintStatus(rollouts.New(o, noon), printer.Style{}, noon, "satchel")
	if took := time.Since(began); took > time.Second {
		t.Errorf("it takes %s", took)
	}
	if lines := strings.Count(text, "\n"); lines > 200 || lines < 30 {
		t.Errorf("%d lines:\n%s", lines, text)
	}
}

func TestRolloutStatusFollows(t *testing.T) {
	c := newTestCluster(t)
	c.Create(aRollout())
	go func() {
		time.Sleep(200 * time.Millisecond) // the outcome is the same if the change comes first
		o := c.rollout("shop")
		finished(o)
		_ = c.Client.Status().Update(t.Context(), o)
	}()
	c.Want(c.Satchel("rollout", "status", "shop", "-w", "--timeout", "30s"), kit.ExitOK, "complete with v1.2.3")
	suspended := aRollout(because(v1alpha1.ReasonSuspended, "spec.suspend is set"), func(o *v1alpha1.BundleRollout) { o.Name = "suspended" })
	c.Create(suspended)
	c.Want(c.Satchel("rollout", "status", "suspended", "--wait"), kit.ExitNo, "Suspended: spec.suspend is set")
	c.Want(c.Satchel("rollout", "status", "suspended", "-w", "--timeout", "300ms"), kit.ExitNo, "Not complete within 300ms")
}
