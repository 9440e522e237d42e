// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

// F44: a deployment that exists before its source, its ServiceAccount or its namespace never had objects. That is no
// lost inventory: the cluster is not searched for them, and what follows is as for a deployment that is created last.
func TestF44DeploymentBeforeWhatItNeeds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	cases := map[string]struct {
		reason string
		deploy func(*v1alpha1.BundleDeployment)
		supply func(t *testing.T, namespace string)
	}{
		"source": {v1alpha1.ReasonSourceNotFound, nil, nil},
		"account": {
			v1alpha1.ReasonAccountNotFound,
			func(d *v1alpha1.BundleDeployment) { d.Spec.ServiceAccountName = "later" },
			func(t *testing.T, namespace string) {
				t.Helper()
				if err := installation.Admin(t.Context(), r.admin, namespace, "later"); err != nil {
					t.Fatal(err)
				}
			},
		},
		"namespace": {
			v1alpha1.ReasonSourceNotFound,
			func(d *v1alpha1.BundleDeployment) { d.Spec.Target.Namespace = d.Namespace + "-later" },
			func(t *testing.T, namespace string) {
				t.Helper()
				r.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace + "-later"}})
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := r.namespace(t)
			since := r.mark(t)
			early := r.deploy(t, namespace, "early", tc.deploy)
			waits := r.unready(t, early, tc.reason)
			if listed := waits.Status.Inventory; listed == nil || listed.Target == "" || listed.Count != 0 {
				t.Errorf("the first status does not say that there are no objects, and on which cluster: %+v", listed)
			}
			r.handled(t, early)
			r.handled(t, early)
			if tc.supply != nil {
				tc.supply(t, namespace)
			}
			r.handled(t, early)
			mark := r.mark(t)
			first := r.publish(t, namespace, "early", "v1", many("c", 1))
			r.ready(t, early, first.Revision)
			writes := writesOf(r.impersonated(t, mark, namespace))
			for _, e := range r.impersonated(t, since, namespace) {
				if e.Verb == "list" && e.Namespace == "" {
					t.Errorf("the cluster was searched: %s", e)
				}
			}
			second := r.publish(t, namespace, "last", "v1", many("d", 1))
			mark = r.mark(t)
			r.ready(t, r.deploy(t, namespace, "last", tc.deploy), second.Revision)
			if last := writesOf(r.impersonated(t, mark, namespace)); len(writes) != len(last) {
				t.Errorf("%d writes of a deployment that waited:\n%v\n%d of one that did not:\n%v", len(writes), writes, len(last), last)
			}
		})
	}
}

// impersonated are the requests since a mark that the controller made as a ServiceAccount of a namespace, but for watches.
func (r *rig) impersonated(t *testing.T, since controlplane.AuditMark, namespace string) []controlplane.AuditEvent {
	t.Helper()
	return r.audit(t, since, func(e controlplane.AuditEvent) bool {
		return strings.HasPrefix(e.ImpersonatedUser, "system:serviceaccount:"+namespace+":") && e.Verb != "watch"
	})
}

// writesOf are the requests that change something.
func writesOf(events []controlplane.AuditEvent) []controlplane.AuditEvent {
	return slices.DeleteFunc(events, func(e controlplane.AuditEvent) bool { return !isWrite(e) })
}
