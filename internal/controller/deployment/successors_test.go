// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// succession is a revision with objects that the API server accepts only when those of the former one are gone.
type succession struct {
	first, second fstest.MapFS
	// before prepares the namespaces.
	before func(t *testing.T, r *rig, namespace, other string)
}

// servicePort is a Service with a nodePort; more is part of its metadata.
func servicePort(namespace, name, more string, port int) *fstest.MapFile {
	return file(fmt.Sprintf("{apiVersion: v1, kind: Service, metadata: {name: %s, namespace: %s%s}, spec: {type: NodePort, selector: {app: x}, ports: [{name: a, port: 80, nodePort: %d}]}}",
		name, namespace, more, port))
}

func quota(limits corev1.ResourceList) func(*testing.T, *rig, string, string) {
	return func(t *testing.T, r *rig, namespace, _ string) {
		t.Helper()
		r.create(t, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one"}, Spec: corev1.ResourceQuotaSpec{Hard: limits}})
		r.eventually(t, t.Context(), "the quota counts", func(ctx context.Context) (bool, string) {
			var live corev1.ResourceQuota
			err := r.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "one"}, &live)
			return err == nil && len(live.Status.Used) > 0, fmt.Sprint(err)
		})
	}
}

func beforeApply(d *v1alpha1.BundleDeployment) {
	quick(d)
	d.Spec.Health.Timeout = v1alpha1.Duration{Duration: 20 * time.Second}
	d.Spec.Prune = v1alpha1.PruneOptions{Timing: v1alpha1.PruneBeforeApply}
}

// F57: what the API server accepts only when an object of the former revision is gone is applied after that object is deleted.
func TestF57SuccessorsOfWhatIsDeletedFirst(t *testing.T) {
	t.Parallel()
	for name, revisions := range map[string]func(namespace, other string) succession{
		"nodePort in another namespace": func(namespace, other string) succession {
			return succession{first: fstest.MapFS{"s.yaml": servicePort(namespace, "web", "", 30571)}, second: fstest.MapFS{"s.yaml": servicePort(other, "web", "", 30571)}}
		},
		"nodePort under another name": func(namespace, _ string) succession {
			return succession{first: fstest.MapFS{"s.yaml": servicePort(namespace, "old", "", 30572)}, second: fstest.MapFS{"s.yaml": servicePort(namespace, "new", "", 30572)}}
		},
		"nodePort of a Service that stays": func(namespace, _ string) succession {
			stays := servicePort(namespace, "stays", "", 30573)
			return succession{first: fstest.MapFS{"s.yaml": stays, "o.yaml": servicePort(namespace, "old", "", 30574)}, second: fstest.MapFS{"s.yaml": servicePort(namespace, "stays", "", 30574)}}
		},
		"clusterIP": func(namespace, other string) succession {
			of := func(namespace string) *fstest.MapFile {
				return file("{apiVersion: v1, kind: Service, metadata: {name: web, namespace: " + namespace + "}, spec: {clusterIP: 198.18.7.57, ports: [{port: 80}]}}")
			}
			return succession{first: fstest.MapFS{"s.yaml": of(namespace)}, second: fstest.MapFS{"s.yaml": of(other)}}
		},
		"quota of one claim": func(namespace, _ string) succession {
			return succession{first: fstest.MapFS{"c.yaml": lateClaim(namespace+"-late", "old", "")}, second: fstest.MapFS{"c.yaml": lateClaim(namespace+"-late", "new", "")}, before: quota(corev1.ResourceList{"persistentvolumeclaims": resource.MustParse("1")})}
		},
		"quota of storage": func(namespace, _ string) succession {
			return succession{first: fstest.MapFS{"c.yaml": lateClaim(namespace+"-late", "old", "")}, second: fstest.MapFS{"c.yaml": lateClaim(namespace+"-late", "new", "")}, before: quota(corev1.ResourceList{"requests.storage": resource.MustParse("1500Mi")})}
		},
		"quota of node ports": func(namespace, _ string) succession {
			return succession{first: fstest.MapFS{"s.yaml": servicePort(namespace, "old", "", 30575)}, second: fstest.MapFS{"s.yaml": servicePort(namespace, "new", "", 30576)}, before: quota(corev1.ResourceList{"services.nodeports": resource.MustParse("1")})}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			namespace, other := r.namespace(t), r.namespace(t)
			of := revisions(namespace, other)
			r.lateClass(t, namespace+"-late")
			if of.before != nil {
				of.before(t, r, namespace, other)
			}
			first := r.publish(t, namespace, "app", "v1", of.first)
			key := r.deploy(t, namespace, "app", beforeApply)
			r.ready(t, key, first.Revision)
			second := r.publish(t, namespace, "app", "v2", of.second)
			r.ready(t, key, second.Revision)
		})
	}
}

// F57: where a deletion does not help, what was deleted is applied again, and it is not tried again and again. What cannot be
// applied again, with its data, is not deleted.
func TestF57SuccessorsThatStayRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace, other := r.namespace(t), r.namespace(t)
	r.lateClass(t, namespace+"-late")
	foreign := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "foreign"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, NodePort: 30577}}}}
	r.create(t, foreign)
	first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"s.yaml": servicePort(namespace, "old", "", 30578), "c.yaml": lateClaim(namespace+"-late", "data", ""), "k.yaml": configMap("kept", "one")})
	key := r.deploy(t, namespace, "app", beforeApply)
	r.ready(t, key, first.Revision)
	service, data := object("v1", "Service", namespace, "old"), object("v1", "PersistentVolumeClaim", namespace, "data")
	was, kept := r.must(t, service).GetUID(), r.must(t, data).GetUID()
	second := r.publish(t, namespace, "app", "v2", fstest.MapFS{"s.yaml": servicePort(namespace, "new", "", 30577), "k.yaml": configMap("kept", "two")})
	d := r.unready(t, key, v1alpha1.ReasonStillRefused)
	if message := conditions.GetMessage(d, "Ready"); !strings.Contains(message, "Service "+namespace+"/old") || !strings.Contains(message, "provided port is already allocated") {
		t.Error(message)
	}
	restored := r.must(t, service).GetUID()
	if restored == was {
		t.Error("the Service was never deleted")
	}
	for range 3 {
		r.patch(t, aConfigMap(namespace, "kept"), `{"data":{"value":"edited"}}`)
		r.repaired(t, namespace, "kept", "one")
		if r.must(t, service).GetUID() != restored {
			t.Fatal("the Service was deleted again")
		}
		if r.must(t, data).GetUID() != kept {
			t.Fatal("the claim was deleted")
		}
	}
	r.delete(t, foreign)
	r.handled(t, key)
	r.ready(t, key, second.Revision)
	r.gone(t, service)
	r.gone(t, data)
}

// F57: a deletion that a finalizer delays is waited for, within spec.health.timeout; nothing else is touched meanwhile, and edits are repaired.
func TestF57DeletionIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]bool{"in time": false, "too late": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			namespace, port := r.namespace(t), 30579
			if late {
				port = 30580
			}
			first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"s.yaml": servicePort(namespace, "old", ", finalizers: [example.org/hold]", port), "k.yaml": configMap("kept", "one")})
			key := r.deploy(t, namespace, "app", beforeApply)
			r.ready(t, key, first.Revision)
			old := object("v1", "Service", namespace, "old")
			finalized := func(ctx context.Context) {
				_ = r.admin.Patch(ctx, old, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
			}
			t.Cleanup(func() { finalized(context.WithoutCancel(t.Context())) })
			second := r.publish(t, namespace, "app", "v2", fstest.MapFS{"s.yaml": servicePort(namespace, "new", "", port), "k.yaml": configMap("kept", "two")})
			r.until(t, key, "it waits", says("Service "+namespace+"/old is being deleted"))
			r.patch(t, aConfigMap(namespace, "kept"), `{"data":{"value":"edited"}}`)
			r.repaired(t, namespace, "kept", "one")
			if late {
				d := r.unready(t, key, v1alpha1.ReasonStillRefused)
				if message := conditions.GetMessage(d, "Ready"); !strings.Contains(message, "not gone within spec.health.timeout (20s)") {
					t.Error(message)
				}
				r.holds(t, namespace, "kept", "one")
				finalized(t.Context())
				r.handled(t, key) // the Service may have been applied again, with its finalizer
			}
			r.eventually(t, t.Context(), "the second revision is applied", func(ctx context.Context) (bool, string) {
				finalized(ctx)
				var d v1alpha1.BundleDeployment
				err := r.admin.Get(ctx, key, &d)
				return err == nil && d.Status.Healthy.Revision == second.Revision, describe(&d)
			})
		})
	}
}

// F57: the deletions are part of the plan that needs an approval, and one approval is enough for them and for what follows.
func TestF57RoomIsMadeAfterTheApproval(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"s.yaml": servicePort(namespace, "old", "", 30581)})
	key := r.deploy(t, namespace, "app", both(beforeApply, asking(v1alpha1.ApprovalManual)))
	_, digest := r.awaits(t, key, first.Revision, v1alpha1.ReasonApprovalRequired)
	r.decide(t, key, digest)
	r.ready(t, key, first.Revision)
	old := object("v1", "Service", namespace, "old")
	was := r.must(t, old).GetUID()
	second := r.publish(t, namespace, "app", "v2", fstest.MapFS{"s.yaml": servicePort(namespace, "new", "", 30581)})
	d, digest := r.awaits(t, key, second.Revision, v1alpha1.ReasonApprovalRequired)
	if r.must(t, old).GetUID() != was {
		t.Error("the Service was deleted before the approval")
	}
	if warnings := strings.Join(d.Status.Warnings, "\n"); !strings.Contains(warnings, "possible only after the deletion of Service "+namespace+"/old") {
		t.Errorf("warnings: %s", warnings)
	}
	r.decide(t, key, digest)
	r.ready(t, key, second.Revision)
}

// F57: a controller that is killed after any of its writes leaves nothing that the next one does not complete or restore.
func TestKilledWhileItMakesRoom(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]bool{"accepted then": false, "refused still": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for kills, dead := 1, true; dead; kills += betweenKills() {
				dead = killedWhileItMakesRoom(t, refused, kills)
			}
		})
	}
}

func killedWhileItMakesRoom(t *testing.T, refused bool, kills int) (dead bool) {
	t.Helper()
	r := newRig(t)
	namespace, other := r.namespace(t), r.namespace(t)
	port := 30600 + kills
	if refused {
		port += 50
		foreign := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "foreign"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, NodePort: int32(port + 100)}}}}
		r.create(t, foreign)
	}
	r.publish(t, namespace, "app", "v1", fstest.MapFS{"s.yaml": servicePort(namespace, "old", "", port), "k.yaml": configMap("kept", "one")})
	key := r.deploy(t, namespace, "app", func(d *v1alpha1.BundleDeployment) {
		beforeApply(d)
		d.Labels = map[string]string{driven: ""}
	})
	t.Cleanup(func() { r.undrive(t, key) })
	d := r.drive(t, key, nil)
	d.ready(t)
	want := port
	if refused {
		want = port + 100
	}
	second := r.publish(t, namespace, "app", "v2", fstest.MapFS{"s.yaml": servicePort(other, "new", "", want), "k.yaml": configMap("kept", "two")})
	death := &dying{left: kills}
	d = d.again(t, death.wrap)
	for range 8 {
		_, _ = d.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	}
	d = d.again(t, nil)
	r.eventually(t, t.Context(), fmt.Sprintf("the next process goes on after write %d", kills), func(ctx context.Context) (bool, string) {
		d.reconcile(t)
		found := d.deployment(t)
		if !refused {
			return isReady(found) && found.Status.Applied.Revision == second.Revision, describe(found)
		}
		still := conditions.GetReason(found, "Ready") == v1alpha1.ReasonStillRefused
		return still && r.get(t, object("v1", "Service", namespace, "old")) && r.value(t, ctx, namespace, "kept") == "one", describe(found)
	})
	return death.dead
}
