// SPDX-License-Identifier: Apache-2.0

package crdsafety

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Change is one change of a CRD.
type Change struct {
	// Version is "v1", or "v1 -> v2" between two versions without conversion; empty
	// when the change concerns the whole CRD.
	Version string
	// Path of the field, as .spec.size; empty when the change does not concern a field. One
	// line, shortened.
	Path string
	// What changed, as "field removed". One line, bounded.
	What string
	// Refused says why the API server does not accept the change either, whatever the enforcement; empty when it does.
	Refused Refusal `json:",omitempty"`
	// Ends: a version ends, or the conversion between versions; schemas are as they were.
	Ends bool `json:",omitempty"`
}

// String is the change for people: "v1 .spec.size: field removed".
func (c Change) String() string {
	where := strings.TrimSpace(c.Version + " " + c.Path)
	if where == "" {
		return c.What
	}
	return where + ": " + c.What
}

// Judgement is the result, sorted and without repetitions. Each list ends after
// 1,000 changes.
type Judgement struct {
	// Breaking changes may break users.
	Breaking []Change
	// Notable changes break nothing but alter the meaning of an unchanged resource:
	// defaults.
	Notable []Change
	// Status are breaking changes below .status where both CRDs have the status subresource: only
	// controllers write those fields.
	Status []Change
	// Switched says why the conversion webhook, or another storage version, has to be switched on before the webhook can answer,
	// and Restored is the version in which resources can be stored again; both empty mostly, and not of Judge.
	Switched, Restored string `json:",omitempty"`
	// Unjudged says why the two CRDs cannot be compared, as "the desired
	// CRD has 51 versions, and at most 50 can be judged". Empty: they were
	// judged. One line, bounded.
	Unjudged string
}

// mostChanges bounds each list. After that many breaking ones the search ends.
const mostChanges = 1000

// Judge compares the CRD on the cluster with the one that is to replace it. Time
// and memory are bounded for any input: CRDs that exceed the limits, or
// cannot be read as a CRD, remain unjudged. The error is the context's.
func Judge(ctx context.Context, live, desired *unstructured.Unstructured) (Judgement, error) {
	was, whyNot := read(live)
	if whyNot != "" {
		return unjudged("the live CRD " + whyNot), nil
	}
	will, whyNot := read(desired)
	if whyNot != "" {
		return unjudged("the desired CRD " + whyNot), nil
	}
	compared := comparisons(was, will)
	var takes sizes
	for _, c := range compared {
		takes[steps] += c.steps
	}
	if whyNot := takes.beyond(); whyNot != "" {
		return unjudged("comparing the two CRDs " + whyNot), nil
	}
	judgement := &Judgement{Breaking: definitionChanges(was.CustomResourceDefinition, will.CustomResourceDefinition)}
	for _, c := range compared {
		err := comparison{c.version, c.statusApart, judgement}.walk(ctx, nil, c.now, c.before)
		if ctx.Err() != nil {
			return Judgement{}, fmt.Errorf("judging a CustomResourceDefinition: %w", ctx.Err())
		}
		if err != nil {
			return unjudged("the schema of " + c.version + " cannot be read: " + err.Error()), nil
		}
	}
	for _, list := range []*[]Change{&judgement.Breaking, &judgement.Notable, &judgement.Status} {
		*list = arranged(*list)
	}
	return *judgement, nil
}

func unjudged(why string) Judgement { return Judgement{Unjudged: words(why)} }

func (j *Judgement) full() bool { return len(j.Breaking) >= mostChanges }

func (c comparison) add(at *place, found []finding) {
	path := ""
	for _, f := range found {
		list := &c.judgement.Breaking
		switch {
		case f.notable:
			list = &c.judgement.Notable
		case c.statusApart && at.top() == "status":
			list = &c.judgement.Status
		}
		if len(*list) >= mostChanges {
			continue
		}
		if path == "" {
			path = at.String()
		}
		*list = append(*list, Change{Version: c.version, Path: path, What: words(f.says)})
	}
}

// arranged sorts changes and removes repetitions.
func arranged(changes []Change) []Change {
	slices.SortFunc(changes, func(a, b Change) int {
		return cmp.Or(strings.Compare(a.Version, b.Version), strings.Compare(a.Path, b.Path), strings.Compare(a.What, b.What))
	})
	return slices.Compact(changes)
}
