// SPDX-License-Identifier: Apache-2.0

package states

import (
	"fmt"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// prefix begins the namespaces of situations.
const prefix = "state-"

// patient is the longest timeout.
const patient = 8760 * time.Hour

// situations are what is recorded, by name. Each leaves a namespace with a BundleDeployment app, and says when it is reached.
var situations = map[string]func(*testing.T, *space){
	"installed": func(t *testing.T, s *space) {
		s.publish(t, "app", configMaps("a", "b"))
		s.deploy(t, "app", nil)
		s.until(t, "app", ready)
	},
	"chart-installed": func(t *testing.T, s *space) {
		s.publish(t, "app", chart(fstest.MapFS{"a.yaml": configMap("a", "1"), "h.yaml": hook("h", "post-install", "kind: ConfigMap\napiVersion: v1")}))
		s.deploy(t, "app", nil)
		s.until(t, "app", ready)
	},
	"approved": func(t *testing.T, s *space) {
		s.publish(t, "app", configMaps("a"))
		s.deploy(t, "app", manual)
		s.approve(t, "app")
		s.until(t, "app", ready)
	},
	"first-approval-pending": func(t *testing.T, s *space) {
		s.publish(t, "app", configMaps("a"))
		s.deploy(t, "app", manual)
		s.until(t, "app", pending)
	},
	"approval-pending": func(t *testing.T, s *space) {
		s.publish(t, "app", configMaps("a"))
		s.deploy(t, "app", manual)
		s.approve(t, "app")
		s.until(t, "app", ready)
		s.publish(t, "app", configMaps("a", "b"))
		s.until(t, "app", pending)
	},
	"refused": func(t *testing.T, s *space) {
		s.publish(t, "app", configMaps("a"))
		s.deploy(t, "app", nil)
		s.until(t, "app", ready)
		s.publish(t, "app", fstest.MapFS{"a.yaml": configMap("a", "2"), "b.yaml": {Data: []byte("{apiVersion: v1, kind: Nothing, metadata: {name: b}}")}})
		s.until(t, "app", reason(v1alpha1.ReasonPlanRefused))
	},
	"rolled-back": func(t *testing.T, s *space) {
		s.publish(t, "app", configMaps("a"))
		s.deploy(t, "app", func(d *v1alpha1.BundleDeployment) {
			d.Spec.Remediation = &v1alpha1.RemediationOptions{Strategy: v1alpha1.RemediationRollback}
			d.Spec.Health.Timeout = v1alpha1.Duration{Duration: 2 * time.Second}
		})
		s.until(t, "app", ready)
		s.publish(t, "app", fstest.MapFS{"a.yaml": configMap("a", "2"), "c.yaml": claim("c")})
		s.until(t, "app", func(d *v1alpha1.BundleDeployment) bool {
			return reason(v1alpha1.ReasonRevisionRejected)(d) && d.Status.Applied.Revision == d.Status.Healthy.Revision && len(d.Status.Inventory.Entries) == 1
		})
	},
	"unhealthy": func(t *testing.T, s *space) {
		s.publish(t, "app", fstest.MapFS{"a.yaml": configMap("a", "1"), "c.yaml": claim("c")})
		s.deploy(t, "app", func(d *v1alpha1.BundleDeployment) {
			d.Spec.Health.Timeout = v1alpha1.Duration{Duration: 2 * time.Second}
		})
		s.until(t, "app", reason(v1alpha1.ReasonHealthFailed))
	},
	"drift-reported": func(t *testing.T, s *space) {
		s.publish(t, "app", configMaps("a"))
		s.deploy(t, "app", func(d *v1alpha1.BundleDeployment) {
			d.Spec.Drift = &v1alpha1.DriftOptions{Correction: v1alpha1.DriftWarn}
		})
		s.until(t, "app", ready)
		s.patch(t, "v1", "ConfigMap", "a", `{"data":{"value":"drift"}}`)
		s.until(t, "app", func(d *v1alpha1.BundleDeployment) bool { return d.Status.Drift != nil && len(d.Status.Drift.Found) > 0 })
	},
	"suspended": func(t *testing.T, s *space) {
		s.publish(t, "app", configMaps("a"))
		s.deploy(t, "app", nil)
		s.until(t, "app", ready)
		s.edit(t, "app", func(d *v1alpha1.BundleDeployment) { d.Spec.Suspend = true })
		s.until(t, "app", ready)
		s.publish(t, "app", configMaps("a", "b"))
	},
	"prune-held": func(t *testing.T, s *space) {
		s.publish(t, "app", configMaps("a", "b", "c", "d", "e", "f", "g"))
		s.deploy(t, "app", func(d *v1alpha1.BundleDeployment) {
			d.Spec.Prune.Limit = new(intstr.FromInt32(2))
		})
		s.until(t, "app", ready)
		s.publish(t, "app", configMaps("a"))
		s.until(t, "app", pending)
	},
	"dependency-waits": func(t *testing.T, s *space) {
		s.publish(t, "app", configMaps("a"))
		s.deploy(t, "app", func(d *v1alpha1.BundleDeployment) { d.Spec.DependsOn = []v1alpha1.Dependency{{Name: "other"}} })
		s.until(t, "app", reason(v1alpha1.ReasonDependencyNotReady))
	},
	"handed-over": func(t *testing.T, s *space) {
		s.publish(t, "app", configMaps("a", "moved"))
		s.deploy(t, "app", nil)
		s.until(t, "app", ready)
		s.publish(t, "other", configMaps("moved"))
		s.deploy(t, "other", nil)
		s.until(t, "other", func(d *v1alpha1.BundleDeployment) bool { return d.Status.ObservedGeneration > 0 })
		s.publish(t, "app", configMaps("a"))
		s.until(t, "other", ready)
		s.until(t, "app", func(d *v1alpha1.BundleDeployment) bool { return ready(d) && len(d.Status.Inventory.Entries) == 1 })
	},
	"hook-runs": func(t *testing.T, s *space) {
		s.publish(t, "app", chart(fstest.MapFS{"a.yaml": configMap("a", "1"), "h.yaml": hook("h", "pre-upgrade", job)}))
		s.deploy(t, "app", nil)
		s.until(t, "app", ready)
		s.publish(t, "app", chart(fstest.MapFS{"a.yaml": configMap("a", "2"), "h.yaml": hook("h", "pre-upgrade", job)}))
		s.until(t, "app", runsHook)
	},
	"removal-hook-runs": func(t *testing.T, s *space) {
		s.publish(t, "app", chart(fstest.MapFS{"a.yaml": configMap("a", "1"), "h.yaml": hook("h", "pre-delete", job)}))
		s.deploy(t, "app", nil)
		s.until(t, "app", ready)
		s.remove(t, "app")
		s.until(t, "app", runsHook)
	},
	"removal-waits": func(t *testing.T, s *space) {
		s.publish(t, "app", configMaps("a", "b"))
		s.deploy(t, "app", nil)
		s.until(t, "app", ready)
		s.patch(t, "v1", "ConfigMap", "a", `{"metadata":{"finalizers":["example.org/wait"]}}`)
		s.remove(t, "app")
		s.until(t, "app", func(d *v1alpha1.BundleDeployment) bool {
			return !d.DeletionTimestamp.IsZero() && len(d.Status.Inventory.Entries) == 1
		})
	},
}

func manual(d *v1alpha1.BundleDeployment) {
	d.Spec.Approval = &v1alpha1.ApprovalOptions{Mode: v1alpha1.ApprovalManual}
}

func ready(d *v1alpha1.BundleDeployment) bool {
	return conditions.IsTrue(d, meta.ReadyCondition) && d.Status.Applied.Revision == d.Status.Attempted.Revision
}

func pending(d *v1alpha1.BundleDeployment) bool {
	return conditions.IsTrue(d, v1alpha1.ApprovalPendingCondition)
}

func reason(want string) func(*v1alpha1.BundleDeployment) bool {
	return func(d *v1alpha1.BundleDeployment) bool { return conditions.GetReason(d, meta.ReadyCondition) == want }
}

func runsHook(d *v1alpha1.BundleDeployment) bool {
	return d.Status.Hooks != nil && d.Status.Hooks.Running != nil && d.Status.Hooks.Running.UID != ""
}

// job is the kind of a Job that never ends.
const job = "kind: Job\napiVersion: batch/v1\nspec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: main, image: example.org/job}]}}}"

func hook(name, event, rest string) *fstest.MapFile {
	return &fstest.MapFile{Data: fmt.Appendf(nil, "metadata: {name: %s, annotations: {helm.sh/hook: %s}}\n%s\n", name, event, rest)}
}

func configMap(name, value string) *fstest.MapFile {
	return &fstest.MapFile{Data: fmt.Appendf(nil, "{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {value: %q}}\n", name, value)}
}

// claim is one that no volume is ever found for.
func claim(name string) *fstest.MapFile {
	return &fstest.MapFile{Data: fmt.Appendf(nil, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: %s}, spec: {storageClassName: none, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}\n", name)}
}

func configMaps(names ...string) fstest.MapFS {
	files := fstest.MapFS{}
	for _, name := range names {
		files[name+".yaml"] = configMap(name, "1")
	}
	return files
}

func chart(templates fstest.MapFS) fstest.MapFS {
	files := fstest.MapFS{"Chart.yaml": {Data: []byte("{apiVersion: v2, name: app, version: 1.0.0}")}}
	for name, file := range templates {
		files["templates/"+name] = file
	}
	return files
}

// live is an object of a kind, to be read.
func live(version, kind, namespace, name string) *unstructured.Unstructured {
	found := &unstructured.Unstructured{}
	found.SetAPIVersion(version)
	found.SetKind(kind)
	found.SetNamespace(namespace)
	found.SetName(name)
	return found
}
