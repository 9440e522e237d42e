// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

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
	phases := map[int]bool{}
	for _, action := range actions {
		phases[action.Phase] = true
	}
	first := slices.Min(append(slices.Collect(maps.Keys(phases)), 0))
	places := make([]place, len(actions))
	sizes := map[place]int{}
	for i, action := range actions {
		places[i] = place{phase: action.Phase, stage: slices.Index(applyOrder, applyStage(action.Object)), rank: action.Rank}
		if action.Untracked || IsCertificate(action.Object) {
			places[i].phase = first
		}
		sizes[places[i]]++
	}
	byPlace := make(map[place][]Action, len(sizes))
	for i, at := range places {
		if byPlace[at] == nil {
			byPlace[at] = make([]Action, 0, sizes[at])
		}
		byPlace[at] = append(byPlace[at], actions[i])
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
