// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// moved are the objects with data or identity of the bundle, beside its ConfigMaps. They need no node.
var moved = []string{
	`{apiVersion: v1, kind: Secret, metadata: {name: key}, stringData: {a: b}}`,
	`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: database}, spec: {replicas: 0, serviceName: database, selector: {matchLabels: {app: database}}, template: {metadata: {labels: {app: database}}, spec: {containers: [{name: a, image: a}]}}}}`,
	`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 0, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: a, image: a}]}}}}`,
}

// renaming is one real cluster beside the hub, which gets one name after the other.
type renaming struct {
	*World
	t      *testing.T
	member *member
	name   string // what it is called now
	count  int
}

// TestR41Renamed gives the names of a real cluster to others, in each order and with each fault: the UIDs of the objects stay, and one
// BundleDeployment is left.
func TestR41Renamed(t *testing.T) {
	if os.Getenv("SATCHEL_FULL") == "" {
		t.Skip("starts two control planes: for the release suite, SATCHEL_FULL=1")
	}
	ctrl.SetLogger(logr.Discard())
	ctx := t.Context()
	w := startWorld(t, Options{Beside: 1, Args: []string{
		"--leader-election-lease-duration", "10s", "--leader-election-renew-deadline", "8s", "--leader-election-retry-period", "1s",
	}})
	second := must1(controlplane.Start(ctx, controlplane.Options{Beside: w.ControlPlane, Nodes: -1, Progress: os.Stderr}))(t)
	t.Cleanup(func() { _ = second.Stop() })
	r := &renaming{World: w, t: t, member: w.joinReal(t, second, "prod"), name: "prod"}
	must(t, w.Publish(ctx, "v1", moved...))
	must(t, w.Create(ctx, v1alpha1.RolloutStrategy{
		Waves:       []v1alpha1.RolloutWave{Wave("prod", nil), Wave("gated", func(wave *v1alpha1.RolloutWave) { wave.Approval = v1alpha1.WaveApprovalBefore })},
		Unreachable: v1alpha1.UnreachableClusters{Policy: v1alpha1.UnreachableSkip, After: v1alpha1.Duration{Duration: 5 * time.Second}},
	}, func(spec *v1alpha1.BundleRolloutSpec) {
		spec.Template.Spec.Raw = []byte(strings.Replace(string(spec.Template.Spec.Raw), "$(cluster)", "prod", 1))
	}))
	r.settled("the installation", "prod")
	for _, one := range []struct {
		name string
		move func(from, to string)
	}{
		{"the new one is created first", func(from, to string) { r.add(from, to, "prod"); r.remove(from) }},
		{"the former one is deleted first", func(from, to string) { kept := r.secret(from); r.remove(from); r.sleep(3); r.put(kept, to, "prod") }},
		{"the label is removed first", r.relabelled},
		{"two names, the older is deleted", func(from, to string) { r.two(from, to); r.remove(from) }},
		{"two names, the newer is deleted", func(from, to string) { r.two(from, to); r.remove(to); r.name = from }},
		{"not reachable meanwhile", func(from, to string) {
			must(t, second.APIServer().Kill())
			r.add(from, to, "prod")
			r.remove(from)
			r.sleep(20)
			must(t, second.APIServer().Start(ctx))
		}},
		{"into a wave with approvals", func(from, to string) { r.add(from, to, "gated"); r.remove(from) }},
		{"while the wave waits for an approval", r.gated},
		{"out of it", func(from, to string) { r.add(from, to, "prod"); r.remove(from) }},
		{"the controllers are killed", func(from, to string) {
			must(t, w.process(t, "bundle-deployment-controller").Kill(ctx)) // which forgets what is wanted, and is away until its lease has expired
			r.add(from, to, "prod")
			r.remove(from)
			must1(w.Await(ctx, "the new name to be started", limit(1), func(*v1alpha1.BundleRollout) bool {
				return r.deployments(ctx)[from] != "" && len(r.deployments(ctx)) == 2
			}))(t)
			must(t, w.process(t, "bundle-rollout-controller").Kill(ctx))
		}},
		{"an entry of the rollout", func(from, to string) {
			r.add(from, "credentials", "prod", "fleet")
			r.inline(to, "credentials")
			r.remove(from)
		}},
		{"the entry gets another name and other credentials", func(_, to string) { r.add("credentials", "other", "prod", "fleet"); r.inline(to, "other") }},
		{"with the policy Orphan", func(_, to string) {
			must(t, w.Edit(ctx, func(o *v1alpha1.BundleRollout) { o.Spec.Removal.Policy = v1alpha1.DeletionOrphan }))
			r.inline(to, "credentials")
		}},
	} {
		if !t.Run(one.name, func(t *testing.T) { r.rename(t, one.move) }) {
			return
		}
	}
}

// rename makes one move, and wants the UIDs as they were.
func (r *renaming) rename(t *testing.T, move func(from, to string)) {
	r.t = t
	before := r.uids()
	from := r.name
	r.count++
	r.name = fmt.Sprintf("prod-%d", r.count)
	began := time.Now()
	move(from, r.name)
	r.settled("the move", r.name)
	t.Logf("after %s", time.Since(began).Round(100*time.Millisecond))
	for object, uid := range r.uids() {
		if before[object] != uid {
			t.Errorf("%s has the UID %s, and had %s", object, uid, before[object])
		}
	}
}

// uids are those of the objects on the cluster.
func (r *renaming) uids() map[string]string {
	r.t.Helper()
	found := map[string]string{}
	for kind, name := range map[string]string{"ConfigMap.v1.": "shop-0", "Secret.v1.": "key", "StatefulSet.v1.apps": "database", "Deployment.v1.apps": "web"} {
		gvk, _ := schema.ParseKindArg(kind)
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(*gvk)
		must(r.t, r.member.client.Get(r.t.Context(), client.ObjectKey{Namespace: "prod", Name: name}, object))
		found[kind+" "+name] = string(object.GetUID())
	}
	return found
}

// settled waits until the BundleDeployment of one name is ready, and the only one.
func (r *renaming) settled(what, name string) {
	r.t.Helper()
	r.await(what, func(context.Context) (bool, string) {
		all := r.deployments(r.t.Context())
		one, found := all[name]
		return found && len(all) == 1 && one == "True Succeeded", fmt.Sprint(all)
	})
}

// deployments are the status and reason of Ready of all BundleDeployments, by cluster.
func (r *renaming) deployments(ctx context.Context) map[string]string {
	r.t.Helper()
	var list v1alpha1.BundleDeploymentList
	must(r.t, r.Client.List(ctx, &list, client.InNamespace(Namespace)))
	found := map[string]string{}
	for i := range list.Items {
		one := &list.Items[i]
		state := ""
		if ready := apimeta.FindStatusCondition(one.Status.Conditions, v1alpha1.ReadyCondition); ready != nil && one.Status.ObservedGeneration == one.Generation {
			state = string(ready.Status) + " " + ready.Reason
		}
		found[one.Labels[v1alpha1.ClusterLabel]] = state
	}
	return found
}

func (r *renaming) await(what string, holds func(context.Context) (bool, string)) {
	r.t.Helper()
	seen := ""
	err := wait.PollUntilContextTimeout(r.t.Context(), 200*time.Millisecond, 4*time.Minute, true, func(ctx context.Context) (done bool, _ error) {
		done, seen = holds(ctx)
		return done, nil
	})
	if err != nil {
		object := must1(r.Get(r.t.Context()))(r.t)
		r.t.Fatalf("waited in vain for %s; last seen: %s; %v", what, seen, object.Status.Conditions)
	}
}

func (r *renaming) sleep(seconds time.Duration) {
	time.Sleep(seconds * time.Second) //nolint:forbidigo // users make the steps of a move one after the other
}

func (r *renaming) secret(name string) *corev1.Secret {
	r.t.Helper()
	var found corev1.Secret
	must(r.t, r.Client.Get(r.t.Context(), client.ObjectKey{Namespace: Namespace, Name: name}, &found))
	return &found
}

// put creates a Secret with the same content under another name, without some labels.
func (r *renaming) put(from *corev1.Secret, to, ring string, without ...string) {
	r.t.Helper()
	one := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: to, Labels: map[string]string{"fleet": "simulated", "ring": ring}}, Data: from.Data}
	for _, label := range without {
		delete(one.Labels, label)
	}
	must(r.t, r.Client.Create(r.t.Context(), one))
}

func (r *renaming) add(from, to, ring string, without ...string) {
	r.t.Helper()
	r.put(r.secret(from), to, ring, without...)
}

func (r *renaming) remove(name string) {
	r.t.Helper()
	must(r.t, r.Client.Delete(r.t.Context(), r.secret(name)))
}

// two has both names beside each other until the rollout has found out.
func (r *renaming) two(from, to string) {
	r.t.Helper()
	r.add(from, to, "prod")
	must1(r.Await(r.t.Context(), "two names of a cluster", limit(1), func(o *v1alpha1.BundleRollout) bool {
		ready := apimeta.FindStatusCondition(o.Status.Conditions, v1alpha1.RolledOutCondition)
		return ready != nil && strings.Contains(ready.Message, "the same cluster has another name as well: "+from+", "+to)
	}))(r.t)
}

// relabelled removes the label of one Secret, which stays, and creates the other one later.
func (r *renaming) relabelled(from, to string) {
	r.t.Helper()
	one := r.secret(from)
	delete(one.Labels, "fleet")
	must(r.t, r.Client.Update(r.t.Context(), one))
	r.sleep(5)
	r.add(from, to, "prod")
	r.sleep(1)
	r.remove(from)
}

// gated gives a cluster of a wave that waits for an approval another name: what it has stays, and nothing is started, until that exists.
func (r *renaming) gated(from, to string) {
	r.t.Helper()
	must(r.t, r.Publish(r.t.Context(), "v2", moved...))
	waits := must1(r.Await(r.t.Context(), "the wave to wait for its approval", limit(1), func(o *v1alpha1.BundleRollout) bool {
		return Reason(o) == v1alpha1.ReasonApprovalPending && o.Status.Waves[1].Plan != ""
	}))(r.t)
	r.add(from, to, "gated")
	r.remove(from)
	must1(r.Await(r.t.Context(), "the removal to wait", limit(1), func(o *v1alpha1.BundleRollout) bool {
		ready := apimeta.FindStatusCondition(o.Status.Conditions, v1alpha1.RolledOutCondition)
		return ready != nil && strings.Contains(ready.Message, from+" is not removed before the cluster "+to)
	}))(r.t)
	r.sleep(5)
	r.uids()
	r.member.has(r.t, "v1")
	if all := r.deployments(r.t.Context()); len(all) != 1 || all[from] == "" {
		r.t.Errorf("before the approval there are %v", all)
	}
	approval := &v1alpha1.BundleApproval{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "gated"}}
	approval.Spec = v1alpha1.BundleApprovalSpec{Rollout: Rollout, Plan: waits.Status.Waves[1].Plan, Decision: v1alpha1.DecisionApprove}
	must(r.t, r.Client.Create(r.t.Context(), approval))
	r.settled("the move", to)
	r.member.has(r.t, "v2")
}

// inline makes the cluster an entry of the rollout, the only one.
func (r *renaming) inline(name, secret string) {
	r.t.Helper()
	must(r.t, r.Edit(r.t.Context(), func(o *v1alpha1.BundleRollout) {
		o.Spec.Clusters = []v1alpha1.RolloutClusters{{Cluster: &v1alpha1.RolloutCluster{
			Name: name, Labels: map[string]string{"ring": "prod"},
			ClusterReference: v1alpha1.ClusterReference{KubeConfig: v1alpha1.KubeConfigReference{SecretRef: v1alpha1.KubeConfigSecretReference{Name: secret}}},
		}}}
	}))
}
