// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/installation"
)

// Two shards of both controllers: one for a label, one for what has none. Each deployment
// and its inline source are reconciled by the shard of its label, and by another one
// when the label changes; each shard has a leader of its own.
func TestShards(t *testing.T) {
	r := newRig(t)
	r.grantShards(t)
	r.alone(t)
	const key = "sharding.fluxcd.io/key"
	_, first := r.sources(t, "source-1", "--watch-label-selector="+key+"=shard1")
	_, rest := r.sources(t, "source-rest", "--watch-label-selector=!"+key)
	servers := []string{first, rest}
	one := r.deployments(t, "deployment-1", servers, "--watch-label-selector="+key+"=shard1", "--enable-leader-election")
	r.deployments(t, "deployment-rest", servers, "--watch-label-selector=!"+key, "--enable-leader-election")

	namespace := r.Namespace(t)
	image := r.Push(t, "shards:v1", configMaps("sharded", 2))
	labelled := r.Deploy(t, namespace, "labelled", image, func(d *v1alpha1.BundleDeployment) { d.Labels = map[string]string{key: "shard1"} })
	plain := r.Deploy(t, namespace, "plain", r.Push(t, "shards-plain:v1", configMaps("plain", 2)), nil)
	r.Ready(t, labelled)
	r.Ready(t, plain)
	r.servedBy(t, labelled, first)
	r.servedBy(t, plain, rest)
	r.leases(t, 2)

	// The shard is gone: its objects wait, and are reconciled by another one without its label.
	one.kill()
	before := r.Ready(t, labelled)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+key+`":null}},"spec":{"interval":"7m0s"}}`))
	if err := r.Admin.Patch(t.Context(), before, patch); err != nil {
		t.Fatal(err)
	}
	r.Until(t, labelled, "the other shard has taken it over", func(d *v1alpha1.BundleDeployment) bool {
		return conditions.IsTrue(d, meta.ReadyCondition)
	})
	r.servedBy(t, labelled, rest)
}

// grantShards adds what config/overlays/shards grants beside the default.
func (r *rig) grantShards(t *testing.T) {
	t.Helper()
	objects, err := installation.Render(filepath.Join(installation.Root(), "config", "overlays", "shards"))
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if !strings.HasSuffix(object.GetName(), "-shards") {
			continue
		}
		if err := r.Admin.Create(t.Context(), object); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
	}
}

// servedBy waits until the inline source of a deployment is published by a server.
func (r *rig) servedBy(t *testing.T, key client.ObjectKey, server string) {
	t.Helper()
	url := ""
	r.Eventually(t, t.Context(), "the source of "+key.Name+" is served by its shard", r.reading(key, func(s *v1alpha1.BundleSource) (bool, string) {
		if s.Status.Artifact != nil {
			url = s.Status.Artifact.URL
		}
		return strings.HasPrefix(url, server+"/"), url + ", want it at " + server
	}))
}

// leases wants so many leases of shards of the deployment controller to be held; other tests
// leave the one without a shard.
func (r *rig) leases(t *testing.T, want int) {
	t.Helper()
	var list coordinationv1.LeaseList
	if err := r.Admin.List(t.Context(), &list, client.InNamespace(installation.Namespace)); err != nil {
		t.Fatal(err)
	}
	held := map[string]string{}
	for _, lease := range list.Items {
		if strings.HasPrefix(lease.Name, deploymentController+"-") && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" {
			held[lease.Name] = *lease.Spec.HolderIdentity
		}
	}
	if len(held) != want {
		t.Errorf("%d leases are held, want %d: %v", len(held), want, held)
	}
}
