// SPDX-License-Identifier: Apache-2.0

package fieldmanager

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/autoscaling"
	"github.com/satchel-dev/satchel/internal/apply/plan/ignore"
)

// strippedManager is the name under which the API server keeps the fields of an
// object that has lost all its managed fields.
const strippedManager = "before-first-apply"

// Conflict is one field that another manager holds with another value.
type Conflict struct {
	manager, subresource, path string
}

// ConflictsOf reads the conflicts out of the API server's answer; none when the
// error is something else.
func ConflictsOf(err error) []Conflict {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsConflict(err) || status.Status().Details == nil {
		return nil
	}
	var conflicts []Conflict
	for _, cause := range status.Status().Details.Causes {
		if cause.Type == metav1.CauseTypeFieldManagerConflict {
			manager, subresource := parseConflict(cause.Message)
			conflicts = append(conflicts, Conflict{manager: manager, subresource: subresource, path: cause.Field})
		}
	}
	return conflicts
}

// parseConflict reads `conflict with "name" with subresource "scale" using v1`.
func parseConflict(message string) (manager, subresource string) {
	manager, rest := quoted(strings.TrimPrefix(message, "conflict with "))
	if after, found := strings.CutPrefix(rest, " with subresource "); found {
		subresource, _ = quoted(after)
	}
	return manager, subresource
}

func quoted(text string) (value, rest string) {
	prefix, err := strconv.QuotedPrefix(text)
	if err != nil {
		return text, ""
	}
	if value, err = strconv.Unquote(prefix); err != nil {
		return prefix, text[len(prefix):]
	}
	return value, text[len(prefix):]
}

// Decision is what is done about the conflicts of one object.
type Decision struct {
	Refused  []Conflict // fields of other managers: nothing is written
	Excluded []string   // paths that are left out of the apply
	Force    bool
}

// Decide decides for each field; the first line that holds decides.
//
//	ignored by the spec           exclude  spec.drift.ignore
//	handed over before        force    the bundle sets the field again
//	scale, autoscaler is gone     force    the bundle sets the replicas again
//	scale, by a controller        exclude  an autoscaler manages the replicas
//	another deployment's manager  refuse
//	the object is adopted         force    the adoption was allowed
//	applied before, same content  force    all of it was ours
//	applied before, stripped      force    the API server lost our managed fields
//	in an earlier content         force    the field was ours
//	else                          refuse
//
// An object that did not exist when the plan was made was created by another client since:
// none of its fields was ours. Earlier contents are those written, and those begun to be written.
func Decide(conflicts []Conflict, action plan.Action, earlier []*unstructured.Unstructured) Decision {
	var v Decision
	confirmed := action.Exists() && action.Previous.Confirmed()
	for _, c := range conflicts {
		switch {
		case isIgnored(action, c.path):
			v.Excluded = append(v.Excluded, c.path)
		case c.manager == inventory.HandoverManager:
			v.Force = true
		case c.subresource == "scale" && action.Handover.Ended && autoscaling.IsManager(c.manager):
			v.Force = true
		case c.subresource == "scale" && !strings.HasPrefix(c.manager, "kubectl"):
			v.Excluded = append(v.Excluded, c.path)
		case inventory.IsManager(c.manager):
			v.Refused = append(v.Refused, c)
		case action.Verb == plan.Adopt, action.Known(), confirmed && c.manager == strippedManager, action.Exists() && anyHasPath(earlier, c.path):
			v.Force = true
		default:
			v.Refused = append(v.Refused, c)
		}
	}
	return v
}

func anyHasPath(objects []*unstructured.Unstructured, path string) bool {
	return slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool { return hasPath(o, path) })
}

// Describe names the other managers and the fields they hold.
func Describe(conflicts []Conflict) string {
	byManager := map[string][]string{}
	for _, c := range conflicts {
		byManager[c.manager] = append(byManager[c.manager], c.path)
	}
	var words []string
	for manager, paths := range byManager {
		holder := strconv.Quote(manager)
		if other := inventory.OwnerOfManager(manager); !other.IsZero() {
			holder = other.String()
		}
		slices.Sort(paths)
		words = append(words, fmt.Sprintf("%s manages %s", holder, strings.Join(paths, ", ")))
	}
	slices.Sort(words)
	return strings.Join(words, "; ") + ": remove the fields from one of the two"
}

// isIgnored tells whether the spec ignores the field of a conflict.
func isIgnored(action plan.Action, path string) bool {
	bare, some := ignore.Without(action.Desired, action.Given)
	return some && hasPath(action.Desired, path) && !hasPath(bare, path)
}

// DesiredWithoutIgnored is an object without its ignored fields.
func DesiredWithoutIgnored(object plan.Object) *unstructured.Unstructured {
	bare, _ := ignore.Without(object.Desired, object.Given)
	return bare
}
