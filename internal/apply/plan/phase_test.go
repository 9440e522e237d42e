// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/completion"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
)

// The order is by phase, then by stage, then by rank.
func TestPhasesAndRanks(t *testing.T) {
	object := func(kind, name string, phase, rank int) plan.Object {
		id := inventory.ID{Kind: kind, Namespace: "shop", Name: name}
		if kind == "Deployment" {
			id.Group = "apps"
		}
		o := desired(id, "")
		o.Phase, o.Rank = phase, rank
		return o
	}
	for name, c := range map[string]struct {
		reason  string
		objects []plan.Object
		want    []string
	}{
		"none": {
			"everything of a stage at once", []plan.Object{object("ConfigMap", "b", 0, 0), object("Deployment", "a", 0, 0), object("ConfigMap", "a", 0, 0)},
			[]string{"foundations: a b", "workloads: a"},
		},
		"ranks": {
			"numbers order a stage, and not more", []plan.Object{object("ConfigMap", "c", 0, 99), object("Deployment", "a", 0, 1), object("ConfigMap", "b", 0, 2), object("ConfigMap", "a", 0, 2)},
			[]string{"foundations: a b", "foundations: c", "workloads: a"},
		},
		"phases": {
			"a phase has all stages", []plan.Object{object("ConfigMap", "z", -5, 0), object("Deployment", "a", 0, 0), object("ConfigMap", "late", 10, 0), object("Deployment", "early", -5, 0)},
			[]string{"foundations of phase -5: z", "workloads of phase -5: early", "workloads of phase 0: a", "foundations of phase 10: late"},
		},
		"one other phase": {
			"it is named", []plan.Object{object("ConfigMap", "a", 10, 0)}, []string{"foundations of phase 10: a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, stage := range plan.Make(plan.Input{Owner: owner, Desired: c.objects}).Stages {
				words := stage.Name + ":"
				for _, action := range stage.Actions {
					words += " " + action.Name
				}
				got = append(got, words)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// The install namespace and the certificates come before all objects that may need them.
func TestEarliestPhase(t *testing.T) {
	o := desired(one, "")
	o.Phase = -7
	certificate := desired(inventory.ID{Kind: "Secret", Namespace: "shop", Name: "c"}, "")
	certificate.Desired.SetLabels(map[string]string{plan.LabelCertificate: plan.CertificateServing})
	made := plan.Make(plan.Input{
		Owner: owner, Desired: []plan.Object{o, certificate}, CreateNamespace: "shop", Observed: plan.Observed{Namespaces: map[string]plan.Presence{"shop": plan.Absent}},
	})
	var got []string
	for _, stage := range made.Stages {
		got = append(got, stage.Name)
	}
	if diff := cmp.Diff([]string{"namespaces of phase -7", "certificates of phase -7", "foundations of phase -7"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPhaseAnnotation(t *testing.T) {
	for text, want := range map[string]int{"": 0, "0": 0, "10": 10, "-10": -10, "+3": 3, "1000": 1000, "1001": 0, "ten": 0, "1.5": 0, " 1": 0, "99999999999999999999": 0} {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}}
		if text != "" {
			object.SetAnnotations(map[string]string{ownership.AnnotationPhase: text})
		}
		got, err := completion.Settings{Owner: owner, InstallNamespace: "shop"}.Complete(object, plan.Kind{Namespaced: true})
		wrong := want == 0 && text != "" && text != "0"
		if got.Phase != want || (err != nil) != wrong || err != nil && !strings.Contains(err.Error(), fmt.Sprintf("%q", text)) {
			t.Errorf("%q: got phase %d, %v", text, got.Phase, err)
		}
	}
}
