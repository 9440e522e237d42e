// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

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

// upgradeSafety turns the judgements into violations, or into warnings. A change that only
// alters a meaning is always a warning, and so is an exemption by the bundle
// itself: the user who installs it must know.
func (in Input) upgradeSafety(actions []Action) ([]violation.Violation, []string) {
	if !in.UpgradeSafety.on() {
		return nil, nil
	}
	var violations []violation.Violation
	var warnings []string
	for _, action := range actions {
		judgement := in.Judgements[action.ID]
		if violation := unsafe(action.ID, judgement); violation != nil && in.UpgradeSafety == Enforce {
			violations = append(violations, *violation)
		} else if violation != nil {
			warnings = append(warnings, violation.Message)
		}
		if action.Alters() && exemptsItself(action.Object) && !in.exempted(action.Object) {
			warnings = append(warnings, fmt.Sprintf("%s changes and was not compared with the one on the cluster: the bundle itself exempts it, by the annotation %s: None",
				action.ID, AnnotationUpgradeSafety))
		}
		if len(judgement.Notable) > 0 {
			warnings = append(warnings, fmt.Sprintf("%s changes what its resources mean: %s", action.ID, summary(judgement.Notable)))
		}
	}
	return violations, warnings
}

// unsafe is the violation for an unsafe change; nil when it is safe.
func unsafe(id inventory.ID, judgement crdsafety.Judgement) *violation.Violation {
	violation := violation.Violation{Rule: violation.CRDUnsafe, Object: id}
	way := fmt.Sprintf("list %s in spec.crds.upgradeSafetyExemptions or annotate it in the bundle with %s: None; or set spec.crds.upgradeSafety to Warn",
		id.Name, AnnotationUpgradeSafety)
	switch {
	case judgement.Unjudged != "":
		violation.Message = fmt.Sprintf("%s changes and cannot be compared with the one on the cluster: %s", id, judgement.Unjudged)
		violation.Remedy = "correct it or make it smaller; where its change is known to be safe, " + way
	case len(judgement.Breaking) > 0:
		violation.Message = fmt.Sprintf("%s changes in a way that what uses it may not survive: %s", id, summary(judgement.Breaking))
		violation.Remedy = "keep it compatible; where nothing uses it, " + way
	default:
		return nil
	}
	return &violation
}

// mostChanges is how many changes of one CRD are named.
const mostChanges = 10

func summary(changes []crdsafety.Change) string {
	var words []string
	for _, change := range changes[:min(len(changes), mostChanges)] {
		words = append(words, change.String())
	}
	if more := len(changes) - mostChanges; more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(words, "; ")
}
