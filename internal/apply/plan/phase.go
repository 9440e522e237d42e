// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// AnnotationPhase assigns an object to a phase, a whole number; the default is 0. The
// objects of a phase are applied when those of all lower ones are applied and healthy, and
// deleted when those of all higher ones are gone, as far as deleteOrder allows.
const AnnotationPhase = "satchel.dev/phase"

// farthestPhase limits the numbers of phases on both sides of 0.
const farthestPhase = 1000

// phaseIn is the phase in the annotations of a live object; 0 when it is invalid, as an object
// with an invalid phase is never applied.
func phaseIn(annotations map[string]string) int {
	phase, err := readPhase(annotations)
	if err != nil {
		return 0
	}
	return phase
}

// phaseOf reads the phase of a desired object.
func phaseOf(object *unstructured.Unstructured) (int, error) {
	return readPhase(object.GetAnnotations())
}

func readPhase(annotations map[string]string) (int, error) {
	text, given := annotations[AnnotationPhase]
	if !given {
		return 0, nil
	}
	phase, err := strconv.Atoi(text)
	if err != nil || phase < -farthestPhase || phase > farthestPhase {
		return 0, fmt.Errorf("the annotation %s is %q: write a whole number from -%d to %d", AnnotationPhase, text, farthestPhase, farthestPhase)
	}
	return phase, nil
}

// place is the position of an object in the order of applying: by its phase, then
// by its stage, then by its rank.
type place struct {
	phase, stage, rank int
}

func (p place) compare(other place) int {
	return cmp.Or(cmp.Compare(p.phase, other.phase), cmp.Compare(p.stage, other.stage), cmp.Compare(p.rank, other.rank))
}

// staged sorts actions into the order of applying; inside a stage they keep the order of
// their identities. The install namespace and certificates, which other objects need and no
// bundle can annotate, belong to the first phase.
func staged(actions []Action) []Stage {
	byPlace := map[place][]Action{}
	phases := map[int]bool{}
	for _, action := range actions {
		phases[action.Phase] = true
	}
	first := slices.Min(append(slices.Collect(maps.Keys(phases)), 0))
	for _, action := range actions {
		at := place{phase: action.Phase, stage: slices.Index(applyOrder, applyStage(action.Object)), rank: action.Rank}
		if action.Untracked || IsCertificate(action.Object) {
			at.phase = first
		}
		byPlace[at] = append(byPlace[at], action)
	}
	var stages []Stage
	for _, at := range slices.SortedFunc(maps.Keys(byPlace), place.compare) {
		name := applyOrder[at.stage]
		if len(phases) > 1 || at.phase != 0 {
			name = fmt.Sprintf("%s of phase %d", name, at.phase)
		}
		stages = append(stages, Stage{Name: name, Phase: at.phase, Actions: byPlace[at]})
	}
	return stages
}
