// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/installation"
)

// movable are objects that move between BundleDeployments, by kind and name.
var movable = map[string]string{
	"ConfigMap.v1. one":              `{apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {a: b}}`,
	"ConfigMap.v1. two":              `{apiVersion: v1, kind: ConfigMap, metadata: {name: two}, data: {a: b}}`,
	"Secret.v1. key":                 moved[0],
	"StatefulSet.v1.apps database":   moved[1],
	"Deployment.v1.apps web":         moved[2],
	"Service.v1. web":                `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{port: 80}]}}`,
	"ServiceAccount.v1. web":         `{apiVersion: v1, kind: ServiceAccount, metadata: {name: web}}`,
	"PersistentVolumeClaim.v1. data": `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], storageClassName: late, resources: {requests: {storage: 1Gi}}}}`,
}

// owners are the BundleDeployments between which they move.
var owners = []string{"a", "b", "c"}

const (
	movesWithKills = 40
	movesNamespace = "moves"
)

// TestF55KilledProcess moves objects between three BundleDeployments, each time some of them at once, while the process of the deployment controller is
// ended by SIGKILL at random: no UID changes.
func TestF55KilledProcess(t *testing.T) {
	if os.Getenv("SATCHEL_FULL") == "" {
		t.Skip("takes minutes: for the release suite, SATCHEL_FULL=1")
	}
	ctrl.SetLogger(logr.Discard())
	ctx := t.Context()
	random, seed := chaosRandom(t)
	w := startWorld(t, Options{Without: "bundle-rollout-controller", Args: []string{
		"--leader-election-lease-duration", "4s", "--leader-election-renew-deadline", "3s", "--leader-election-retry-period", "500ms",
	}})
	late := storagev1.VolumeBindingWaitForFirstConsumer
	must(t, w.Client.Create(ctx, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "late"}, Provisioner: "example.org/none", VolumeBindingMode: &late}))
	must(t, w.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: movesNamespace}}))
	must(t, installation.Account(ctx, w.Client, movesNamespace, "installer", "cluster-admin", ""))

	at := map[string]string{}
	for object := range movable {
		at[object] = owners[random.IntN(len(owners))]
	}
	w.assign(t, 0, at)
	for _, owner := range owners {
		d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: movesNamespace, Name: owner}}
		d.Spec.ServiceAccountName = "installer"
		d.Spec.SourceRef = &v1alpha1.SourceReference{Kind: v1alpha1.BundleSourceKind, Name: "all"}
		d.Spec.Path = owner
		d.Spec.RetryInterval = v1alpha1.Duration{Duration: 2 * time.Second}
		must(t, w.Client.Create(ctx, d))
	}
	w.settledMoves(t, "the installation")
	before := movedUIDs(t, w.Client)
	process := w.process(t, "bundle-deployment-controller")
	kills, moves := 0, 0
	for turn := 1; turn <= movesWithKills; turn++ {
		for object := range movable {
			if to := owners[random.IntN(len(owners))]; to != at[object] && random.IntN(2) == 0 {
				at[object] = to
				moves++
			}
		}
		w.assign(t, turn, at)
		for range 1 + random.IntN(2) {
			time.Sleep(time.Duration(random.IntN(2500)) * time.Millisecond) //nolint:forbidigo // it is killed at a random time
			must(t, process.Kill(ctx))
			kills++
		}
		w.settledMoves(t, fmt.Sprint("turn ", turn, " of seed ", seed))
	}
	lost := 0
	for object, uid := range movedUIDs(t, w.Client) {
		if before[object] != uid {
			lost++
			t.Errorf("%s has the UID %s, and had %s", object, uid, before[object])
		}
	}
	t.Logf("%d moves, %d kills, %d UIDs lost", moves, kills, lost)
}

// assign publishes the bundles of all owners as one revision of their source.
func (w *World) assign(t *testing.T, turn int, at map[string]string) {
	t.Helper()
	ctx := t.Context()
	source := &v1alpha1.BundleSource{ObjectMeta: metav1.ObjectMeta{Namespace: movesNamespace, Name: "all"}}
	for _, owner := range owners {
		files := []string{"{apiVersion: v1, kind: ConfigMap, metadata: {name: own-" + owner + "}}"}
		for _, object := range slices.Sorted(maps.Keys(movable)) {
			if at[object] == owner {
				files = append(files, movable[object])
			}
		}
		name := fmt.Sprintf("%s-%d", owner, turn)
		must(t, w.Client.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: movesNamespace, Name: name}, Data: map[string]string{"all.yaml": strings.Join(files, "\n---\n")},
		}))
		source.Spec.Sources = append(source.Spec.Sources, v1alpha1.Source{Destination: owner, ConfigMap: &v1alpha1.LocalReference{Name: name}})
	}
	must(t, w.upsert(ctx, source))
}

// settledMoves waits until all BundleDeployments are ready with the newest revision of their source.
func (w *World) settledMoves(t *testing.T, what string) {
	t.Helper()
	seen := ""
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		var source v1alpha1.BundleSource
		var list v1alpha1.BundleDeploymentList
		if err := w.Client.Get(ctx, client.ObjectKey{Namespace: movesNamespace, Name: "all"}, &source); err != nil {
			return false, err
		}
		if err := w.Client.List(ctx, &list, client.InNamespace(movesNamespace)); err != nil {
			return false, err
		}
		ready := 0
		seen = fmt.Sprint(source.Status.ObservedGeneration, " of ", source.Generation)
		for i := range list.Items {
			one := &list.Items[i]
			state := apimeta.FindStatusCondition(one.Status.Conditions, v1alpha1.ReadyCondition)
			if state == nil || source.Status.Artifact == nil {
				continue
			}
			seen += fmt.Sprintf("; %s: %s %s %s", one.Name, one.Status.Applied.Revision, state.Reason, state.Message)
			if state.Status == metav1.ConditionTrue && one.Status.Healthy.Revision == source.Status.Artifact.Revision && source.Status.ObservedGeneration == source.Generation {
				ready++
			}
		}
		return ready == len(owners), nil
	})
	if err != nil {
		t.Fatalf("%s: not settled: %s", what, seen)
	}
}

// movedUIDs are those of the objects that move.
func movedUIDs(t *testing.T, c client.Client) map[string]types.UID {
	t.Helper()
	found := map[string]types.UID{}
	for object := range movable {
		kind, name, _ := strings.Cut(object, " ")
		gvk, _ := schema.ParseKindArg(kind)
		one := &unstructured.Unstructured{}
		one.SetGroupVersionKind(*gvk)
		must(t, c.Get(t.Context(), client.ObjectKey{Namespace: movesNamespace, Name: name}, one))
		found[object] = one.GetUID()
	}
	return found
}
