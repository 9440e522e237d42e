// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	"github.com/satchel-dev/satchel/internal/apply/crds"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/crdsafety"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
)

// AnnotationUpgradeSafety on a CRD of the bundle exempts it from being judged when
// its value is None. On the live object it has no effect: users who may annotate a CRD
// are not responsible for the bundle.
const AnnotationUpgradeSafety = "satchel.dev/crd-upgrade-safety"

// ToJudge returns the CRDs with a change that has to be judged: those that exist, are ours
// and get other content, and are not exempted. None when UpgradeSafety is off.
func (in Input) ToJudge() []Object {
	if !in.UpgradeSafety.on() {
		return nil
	}
	desired, _ := unique(in.Desired)
	var judged []Object
	for _, object := range desired {
		if !crds.IsCRD(object.ID) || in.exempts(object) {
			continue
		}
		if action, violation := in.decide(object); violation == nil && action.Alters() {
			judged = append(judged, object)
		}
	}
	return judged
}

func (e Enforcement) on() bool { return e == Enforce || e == Warn }

func (in Input) exempts(object Object) bool { return exemptsItself(object) || in.exempted(object) }

// exempted tells whether the user exempts the CRD.
func (in Input) exempted(object Object) bool { return slices.Contains(in.Exempt, object.Name) }

// exemptsItself tells whether the bundle exempts its own CRD.
func exemptsItself(object Object) bool {
	return crds.IsCRD(object.ID) && object.Desired.GetAnnotations()[AnnotationUpgradeSafety] == string(EnforcementNone)
}

// upgradeSafety turns the judgements into violations, or into warnings. A change that only alters a meaning is always a
// warning, and so is an exemption by the bundle itself: the user who installs it must know.
func (in Input) upgradeSafety(actions []Action) ([]violation.Violation, []string) {
	if !in.UpgradeSafety.on() {
		return nil, nil
	}
	var violations []violation.Violation
	var warnings []string
	for _, action := range actions {
		switch found := in.unsafe(action.ID); {
		case found == nil:
		case in.keepsDefinition(action):
			warnings = append(warnings, fmt.Sprintf("%s stays as it is on the cluster, as a newer revision left it: the deployment went back to a revision that changes it in a way that what uses it may not survive",
				action.ID))
			continue
		case in.UpgradeSafety == Enforce:
			if why := in.Unfit[action.ID]; in.Returning && why != "" {
				found.Message += "; it cannot be kept as it is on the cluster either: " + why
			}
			violations = append(violations, *found)
		default:
			warnings = append(warnings, found.Message)
		}
		if action.Alters() && exemptsItself(action.Object) && !in.exempted(action.Object) {
			warnings = append(warnings, fmt.Sprintf("%s changes and was not compared with the one on the cluster: the bundle itself exempts it, by the annotation %s: None",
				action.ID, AnnotationUpgradeSafety))
		}
		judgement := in.Judgements[action.ID]
		warnings = append(warnings, judgement.Lesser(action.ID.String(), in.Unused[action.ID], in.restores(action.ID))...)
	}
	return violations, warnings
}

// keepsDefinition tells whether a CRD is kept: its change is unsafe, and an earlier revision returns that can work with it.
func (in Input) keepsDefinition(action Action) bool {
	return in.Returning && in.UpgradeSafety == Enforce && action.Verb == Update && in.Unfit[action.ID] == "" && in.unsafe(action.ID) != nil
}

// keepDefinitions leaves out the CRDs that are kept. They stay in the inventory as they were applied last.
func (in Input) keepDefinitions(actions []Action) (left []Action, kept []inventory.ID) {
	for _, action := range actions {
		if in.keepsDefinition(action) {
			kept = append(kept, action.ID)
		}
	}
	if len(kept) == 0 {
		return actions, nil
	}
	return slices.DeleteFunc(slices.Clone(actions), in.keepsDefinition), kept
}

// restores tells whether resources can be stored in an earlier version again, and whether that is all that the change of a CRD takes.
func (in Input) restores(id inventory.ID) bool {
	judgement := in.Judgements[id]
	return judgement.Restored != "" && (in.Unused[id] || in.Returning && in.Unfit[id] != "") && judgement.OnlyEnds()
}

// unsafe is the violation for an unsafe change of a CRD; nil when it is safe. Without a single custom resource only
// what the API server refuses is left of it.
func (in Input) unsafe(id inventory.ID) *violation.Violation {
	judgement := in.Judgements[id]
	if in.restores(id) {
		return nil
	}
	if in.Unused[id] {
		judgement.Unjudged = ""
		judgement.Breaking = judgement.Refused()
	}
	switch {
	case judgement.Unjudged != "":
		return &violation.Violation{
			Rule: violation.CRDUnsafe, Object: id,
			Message: fmt.Sprintf("%s changes and cannot be compared with the one on the cluster: %s", id, judgement.Unjudged),
			Remedy:  "correct it or make it smaller; where its change is known to be safe, " + in.exemption(id),
		}
	case len(judgement.Breaking) > 0:
		remedy := judgement.Ways(id.Name, in.Unused[id]) // an exemption would move the refusal into the middle of the apply
		if remedy == "" {
			remedy = "keep it compatible; where nothing uses it, " + in.exemption(id)
		}
		return &violation.Violation{
			Rule: violation.CRDUnsafe, Object: id,
			Message: fmt.Sprintf("%s changes in a way that what uses it may not survive: %s", id, crdsafety.Summary(judgement.Breaking)),
			Remedy:  remedy,
		}
	}
	return nil
}

// exemption is the way around the check, where the API server accepts the change, with the reason why it is not known
// whether there is any resource.
func (in Input) exemption(id inventory.ID) string {
	way := fmt.Sprintf("list %s in spec.apply.crds.upgradeSafetyExemptions or annotate it in the bundle with %s: None; or set spec.apply.crds.upgradeSafety to Warn",
		id.Name, AnnotationUpgradeSafety)
	if why := in.Unlisted[id]; why != "" {
		way += "; whether there is any resource of it at all is not known: " + why
	}
	return way
}
