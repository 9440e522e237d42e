// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"
	"testing/fstest"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// lateClaim is a claim of the StorageClass of a test, with the annotations; its volumes are provisioned for the first Pod.
func lateClaim(class, name, annotations string) *fstest.MapFile {
	return file(`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: ` + name + `, annotations: {` + annotations + `}}, ` +
		`spec: {accessModes: [ReadWriteOnce], storageClassName: ` + class + `, resources: {requests: {storage: 1Gi}}}}`)
}

func (r *rig) lateClass(t *testing.T, name string) {
	t.Helper()
	class := object("storage.k8s.io/v1", "StorageClass", "", name)
	class.Object["provisioner"] = "example.org/none"
	class.Object["volumeBindingMode"] = "WaitForFirstConsumer"
	r.create(t, class)
}

// flux-f10 (F49): a claim of which the first consumer is still to come neither holds its phase nor the revision.
func TestF49ClaimWithoutConsumer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	r.lateClass(t, namespace+"-late")
	source := r.publish(t, namespace, "app", "v1", fstest.MapFS{
		"c.yaml": lateClaim(namespace+"-late", "barn", "satchel.dev/phase: '-5'"), "m.yaml": configMap("later", "1"),
	})
	key := r.deploy(t, namespace, "app", quick)
	r.ready(t, key, source.Revision)
	next := r.publish(t, namespace, "app", "v2", fstest.MapFS{"c.yaml": lateClaim(namespace+"-late", "barn", "")})
	r.ready(t, key, next.Revision)
	r.gone(t, aConfigMap(namespace, "later")) // pruning goes by the same rule
}

// flux-f33 (F49): a claim as a pre-install hook is not waited for.
func TestF49ClaimAsHook(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	r.lateClass(t, namespace+"-late")
	chart := charted(fstest.MapFS{
		"a.yaml": lateClaim(namespace+"-late", "mole-db", `helm.sh/hook: "pre-install,pre-upgrade", helm.sh/resource-policy: keep, helm.sh/hook-delete-policy: never`),
		"b.yaml": configMap("object", "1"),
	})
	source := r.publish(t, namespace, "app", "v1", chart)
	key := r.deploy(t, namespace, "app", both(quick, helmed))
	d := r.ready(t, key, source.Revision)
	if hooks := d.Status.Hooks; hooks == nil || hooks.Operation != v1alpha1.HookInstall || hooks.Completed != 1 {
		t.Errorf("status.hooks is %+v", hooks)
	}
}
