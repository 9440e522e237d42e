// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fluxcd/pkg/runtime/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// deadWebhook is a webhook on all writes and deletions of gadgets, without a server.
func deadWebhook(name, group string) *fstest.MapFile {
	return file(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: ` + name + `}
webhooks:
- name: gadgets.` + group + `
  clientConfig: {url: "https://127.0.0.1:1/validate"}
  rules: [{apiGroups: [` + group + `], apiVersions: ["*"], operations: [CREATE, UPDATE, DELETE], resources: [gadgets]}]
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
`)
}

// F40: a bundle has a CRD, a resource of its kind and a webhook on those, without a server. A removal deletes the
// webhook's configuration first.
func TestF40DeadWebhookOfTheBundle(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	group := r.group(t, namespace)
	bundle := fstest.MapFS{"a.yaml": crd(group), "b.yaml": gadget(group, "own"), "c.yaml": deadWebhook(namespace, group)}
	first := r.publish(t, namespace, "app", "v1", bundle)
	key := r.deploy(t, namespace, "app", quick)
	r.ready(t, key, first.Revision)
	own := object(group+"/v1", "Gadget", namespace, "own")
	webhook := object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", namespace)
	r.refused(t, own)

	r.remove(t, key)
	r.gone(t, own)
	r.gone(t, webhook)
	r.told(t, namespace, "WebhookDeleted: ValidatingWebhookConfiguration.admissionregistration.k8s.io "+namespace+" was deleted before everything else")
}

// F40: if such a webhook refuses an upgrade of a resource, the message says the remedy, which works: without the
// configuration the revision is applied, and recreates the configuration.
func TestF40DeadWebhookInAnUpgrade(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	group := r.group(t, namespace)
	bundle := func(size string) fstest.MapFS {
		own := strings.Replace(string(gadget(group, "own").Data), "size: 1", "size: "+size, 1)
		return fstest.MapFS{"a.yaml": crd(group), "b.yaml": file(own), "c.yaml": deadWebhook(namespace, group)}
	}
	first := r.publish(t, namespace, "app", "v1", bundle("1"))
	key := r.deploy(t, namespace, "app", quick)
	r.ready(t, key, first.Revision)
	r.refused(t, object(group+"/v1", "Gadget", namespace, "own"))

	second := r.publish(t, namespace, "app", "v2", bundle("2"))
	r.until(t, key, "it names the way out", func(d *v1alpha1.BundleDeployment) bool {
		message := conditions.GetMessage(d, "Ready")
		return strings.Contains(message, "belongs to this deployment, and its server cannot be reached") &&
			strings.Contains(message, "kubectl delete validatingwebhookconfiguration "+namespace)
	})
	webhook := object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", namespace)
	r.eventually(t, t.Context(), "the way out ends in the new revision", func(ctx context.Context) (bool, string) {
		var d v1alpha1.BundleDeployment
		if err := r.admin.Get(ctx, key, &d); err != nil {
			return false, err.Error()
		}
		if d.Status.Healthy.Revision == second.Revision {
			return true, ""
		}
		_ = r.admin.Delete(ctx, webhook) // again, where drift was corrected in between
		return false, describe(&d)
	})
	r.eventually(t, t.Context(), "the webhook is back", func(context.Context) (bool, string) { return r.get(t, webhook), "" })
	r.remove(t, key)
}

// F40: an unreachable webhook outside the bundle stays, as do the objects that it blocks. The condition names it.
func TestF40DeadWebhookOfOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	group := r.group(t, namespace)
	owner := r.publish(t, namespace, "guard", "v1", fstest.MapFS{"c.yaml": deadWebhook(namespace, group)})
	first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": crd(group), "b.yaml": gadget(group, "own")})
	key := r.deploy(t, namespace, "app", quick)
	r.ready(t, key, first.Revision)
	guard := r.deploy(t, namespace, "guard", quick)
	r.ready(t, guard, owner.Revision)
	own := object(group+"/v1", "Gadget", namespace, "own")
	r.refused(t, own)
	r.startRemoval(t, key)
	r.until(t, key, "the removal is refused", func(d *v1alpha1.BundleDeployment) bool {
		return strings.Contains(conditions.GetMessage(d, "Ready"), "gadgets."+group)
	})
	r.must(t, object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", namespace))
	r.must(t, own)
	r.remove(t, guard)
	r.remove(t, key)
}

// refused waits until the API server asks the webhook, which takes it a moment.
func (r *rig) refused(t *testing.T, o client.Object) {
	t.Helper()
	r.eventually(t, t.Context(), "the webhook is asked", func(ctx context.Context) (bool, string) {
		err := r.admin.Delete(ctx, o, client.DryRunAll)
		return apierrors.IsInternalError(err), "not refused"
	})
}
