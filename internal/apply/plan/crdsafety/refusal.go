// SPDX-License-Identifier: Apache-2.0

package crdsafety

import (
	"fmt"
	"slices"
	"strings"
)

// Refusal is a rule of the API server about updates of CRDs.
type Refusal string

const (
	// Identity: scope and kind of an established CRD cannot change.
	Identity Refusal = "Identity"
	// StoredVersion: a version in status.storedVersions cannot be removed.
	StoredVersion Refusal = "StoredVersion"
)

// Accepted are the breaking changes that the API server accepts.
func (j *Judgement) Accepted() []Change {
	return slices.DeleteFunc(slices.Clone(j.Breaking), func(change Change) bool { return change.Refused != "" })
}

// Refused are the breaking changes that the API server does not accept.
func (j *Judgement) Refused() []Change {
	return slices.DeleteFunc(slices.Clone(j.Breaking), func(change Change) bool { return change.Refused == "" })
}

// OnlyEnds tells whether nothing but versions, and the conversion between them, ends.
func (j *Judgement) OnlyEnds() bool {
	return j.Unjudged == "" && len(j.Breaking) > 0 && !slices.ContainsFunc(j.Breaking, func(change Change) bool { return !change.Ends })
}

// Lesser are warnings about the changes of a CRD that do not make it unsafe. Unused tells whether it has no resources, and
// restores whether they are stored as Restored again.
func (j *Judgement) Lesser(name string, unused, restores bool) []string {
	var warnings []string
	if changes := j.Accepted(); restores {
		warnings = append(warnings, fmt.Sprintf("%s goes back to an earlier one: its resources are first stored as %s again, through its conversion webhook", name, j.Restored))
	} else if unused && j.Unjudged != "" {
		warnings = append(warnings, fmt.Sprintf("%s changes and cannot be compared with the one on the cluster, which has no resources: %s", name, j.Unjudged))
	} else if unused && len(changes) > 0 {
		warnings = append(warnings, fmt.Sprintf("%s changes in a way that its resources would not survive, and there is none on the cluster: %s", name, Summary(changes)))
	}
	if j.Switched != "" {
		warnings = append(warnings, fmt.Sprintf("%s gets another conversion webhook or storage version at once, because %s: until the webhook answers, "+
			"its resources can be neither read nor written in a version other than the one in which they are stored", name, j.Switched))
	}
	if len(j.Status) > 0 {
		warnings = append(warnings, fmt.Sprintf("%s changes below .status, which only controllers write, through the status subresource: %s", name, Summary(j.Status)))
	}
	if len(j.Notable) > 0 {
		warnings = append(warnings, fmt.Sprintf("%s changes what its resources mean: %s", name, Summary(j.Notable)))
	}
	return warnings
}

// Ways says what can be done about changes that the API server does not accept; empty without such changes. Unused
// tells whether the CRD has no resources.
func (j *Judgement) Ways(name string, unused bool) string {
	by := func(rule Refusal) bool {
		return slices.ContainsFunc(j.Breaking, func(change Change) bool { return change.Refused == rule })
	}
	var ways []string
	if by(Identity) {
		lost := "which deletes every resource of it: save them first"
		if unused {
			lost = "of which there is no resource"
		}
		ways = append(ways, fmt.Sprintf("the API server never changes scope or kind of a CRD: define them in a CRD of another name; "+
			"or set spec.suspend to true, run `kubectl delete crd %s`, %s, and set spec.suspend to false: the CRD is then created", name, lost))
	}
	if by(StoredVersion) {
		ways = append(ways, fmt.Sprintf("the API server never removes a version in which resources may be stored: keep it in spec.versions of the CRD, with served: false, "+
			"in a revision that stores another version; write each resource once; then remove it from status.storedVersions with `kubectl edit crd %s --subresource=status`, and apply this revision",
			name))
	}
	return strings.Join(ways, "; ")
}
