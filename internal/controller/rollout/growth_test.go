// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/installation"
)

// TestM38InvalidSpec: variables that multiply are refused with a reason, and no BundleDeployment is created.
func TestM38InvalidSpec(t *testing.T) {
	references := func(n int) []byte {
		return fmt.Appendf(nil, `{"serviceAccountName":"deployer","processors":[{"variables":{"values":{"b":"%s"}}}]}`, strings.Repeat("$(a)", n))
	}
	kilo := strings.Repeat("y", 1024)
	for name, change := range map[string]func(*v1alpha1.BundleRolloutSpec){
		"value": func(spec *v1alpha1.BundleRolloutSpec) {
			spec.Template.Spec.Raw = references(15_000)
			spec.Variables = []v1alpha1.RolloutVariable{{Name: "a", Value: &kilo}}
		},
		"annotation": func(spec *v1alpha1.BundleRolloutSpec) {
			spec.Template.Spec.Raw = references(12_000)
			spec.Variables = []v1alpha1.RolloutVariable{{Name: "a", Annotation: "big"}}
			spec.Clusters[2].Cluster.Annotations = map[string]string{"big": strings.Repeat("x", 4096)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.publish("v1")
			r.create(change)
			object := r.until("it is refused", func(o *v1alpha1.BundleRollout) bool { return condition(o, "Ready") == "False InvalidSpec" })
			if condition(object, "Stalled") != "True InvalidSpec" || len(r.children()) > 0 {
				t.Errorf("Stalled is %s, children: %v", condition(object, "Stalled"), r.children())
			}
		})
	}
	t.Run("admission", func(t *testing.T) {
		r := newRig(t)
		r.create()
		for what, change := range map[string]func(*v1alpha1.RolloutCluster){
			"annotation": func(c *v1alpha1.RolloutCluster) {
				c.Annotations = map[string]string{"big": strings.Repeat("x", 200_000)}
			},
			"label": func(c *v1alpha1.RolloutCluster) { c.Labels = map[string]string{"big": strings.Repeat("x", 64)} },
		} {
			object := r.get()
			change(object.Spec.Clusters[0].Cluster)
			if err := shared.admin.Update(t.Context(), object); !apierrors.IsInvalid(err) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

// TestM38Annotations: of the annotations of Secrets, what variables name stays in memory.
func TestM38Annotations(t *testing.T) {
	r := prepareRig(t) // alone, since memory is measured
	r.publish("v1")
	if err := installation.Account(t.Context(), shared.admin, r.namespace, "deployer", "cluster-admin", ""); err != nil {
		t.Fatal(err)
	}
	const secrets, size = 80, 255_000
	for i := range secrets {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: r.namespace, Name: fmt.Sprintf("c%d", i), Labels: map[string]string{"fleet": "edge", "ring": "one"},
			Annotations: map[string]string{"tier": fmt.Sprintf("tier%d", i), "big": strings.Repeat("x", size)},
		}}
		if err := shared.admin.Create(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	r.create(func(spec *v1alpha1.BundleRolloutSpec) {
		spec.Clusters = []v1alpha1.RolloutClusters{{KubeConfigSecrets: &v1alpha1.KubeConfigSecretClusters{
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{"fleet": "edge"}},
		}}}
		spec.Variables = []v1alpha1.RolloutVariable{{Name: "t", Annotation: "tier"}}
		spec.Template.Spec.Raw = []byte(`{"serviceAccountName":"deployer","path":"$(t)"}`)
	})
	held := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := held()
	object := r.until("the clusters are known", func(o *v1alpha1.BundleRollout) bool {
		return o.Status.Clusters != nil && o.Status.Clusters.Total == secrets && len(r.children()) > 0
	})
	grown := int64(held()) - int64(before)
	t.Logf("%d MiB of annotations, %d KiB more in memory", secrets*size>>20, grown>>10)
	if grown > secrets*size/2 {
		t.Errorf("%d KiB more in memory", grown>>10)
	}
	for on, child := range r.children() {
		if child.Spec.Path != "tier"+strings.TrimPrefix(on, "c") {
			t.Errorf("the path of %s is %q", on, child.Spec.Path)
		}
	}
	runtime.KeepAlive(object)
	// Another variable needs what was dropped, and the clusters that have a revision keep what that names.
	r.edit(func(o *v1alpha1.BundleRollout) {
		o.Spec.Variables = []v1alpha1.RolloutVariable{{Name: "t", Annotation: "big"}}
	})
	object = r.until("the revision is refused", func(o *v1alpha1.BundleRollout) bool { return condition(o, "Ready") == "False InvalidChild" })
	if worst := fmt.Sprint(object.Status.Conditions); !strings.Contains(worst, "has more than 4096 bytes") {
		t.Errorf("the reason is not shown: %.500s", worst)
	}
	for on, child := range r.children() {
		if child.Spec.Path != "tier"+strings.TrimPrefix(on, "c") {
			t.Errorf("the path of %s became %q", on, child.Spec.Path)
		}
	}
}
