// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/rollout/children"
	"github.com/satchel-dev/satchel/internal/controller/sourceusers"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// suspended is a deployment with a spec and annotations of these sizes, as the API server sends it.
func suspended(t *testing.T, i, spec, annotation int, labels map[string]string) []byte {
	t.Helper()
	d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: fmt.Sprint("d-", i), Labels: labels,
		Annotations:   map[string]string{corev1.LastAppliedConfigAnnotation: strings.Repeat("a", annotation), "note": "n"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{}}`)}}},
	}}
	d.Spec.ServiceAccountName, d.Spec.Suspend = "installer", true
	d.Spec.Helm = &v1alpha1.HelmOptions{Values: &apiextensionsv1.JSON{Raw: fmt.Appendf(nil, `{"text":%q}`, strings.Repeat("v", spec/2))}}
	d.Spec.Processors = []v1alpha1.Processor{{Patch: &v1alpha1.Patch{Patch: strings.Repeat("p", spec/2)}}}
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestM40CachesKeepWhatIsRead: how much memory the caches of the three controllers take for 28 BundleDeployments of 1 MB, of the
// largest size that is permitted, and with large annotations. A cached object is itself never changed by being cached twice.
func TestM40CachesKeepWhatIsRead(t *testing.T) {
	const many = 28
	processes := map[string]Options{"deployment": {}, "source": {Trim: sourceusers.Trim}, "rollout": {Trim: children.Trim}}
	rollout := map[string]string{v1alpha1.RolloutLabel: "fleet"}
	for name, c := range map[string]struct {
		spec, annotation int
		labels           map[string]string
		most             map[string]int // MiB
	}{
		"1 MB":               {1 << 20, 0, nil, map[string]int{"deployment": 1, "source": 1, "rollout": 1}},
		"of a rollout":       {1 << 20, 0, rollout, map[string]int{"deployment": 1, "source": 1, "rollout": 1}},
		"as large as it may": {255 << 10, 0, nil, map[string]int{"deployment": 8, "source": 1, "rollout": 1}},
		"large annotations":  {1 << 10, 250 << 10, rollout, map[string]int{"deployment": 1, "source": 1, "rollout": 1}},
	} {
		for process, o := range processes {
			t.Run(name+"/"+process, func(t *testing.T) {
				before := heap()
				cached := make([]*v1alpha1.BundleDeployment, 0, many)
				for i := range many {
					d := &v1alpha1.BundleDeployment{}
					if err := json.Unmarshal(suspended(t, i, c.spec, c.annotation, c.labels), d); err != nil {
						t.Fatal(err)
					}
					for range 2 {
						if _, err := o.trim(d); err != nil {
							t.Fatal(err)
						}
					}
					if refused := effective.SizeProblem(d) != nil; process == "deployment" && refused != (c.spec > effective.LargestSpec) {
						t.Fatalf("refused: %t, with %d bytes", refused, c.spec)
					}
					cached = append(cached, d)
				}
				took := (heap() - before) >> 20
				t.Logf("%d MiB for %d objects", took, many)
				if took > 2*c.most[process] {
					t.Errorf("they take %d MiB, want at most %d", took, c.most[process])
				}
				runtime.KeepAlive(cached)
			})
		}
	}
}

// heap is what is allocated.
func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc) //nolint:gosec // it is less
}
