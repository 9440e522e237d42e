// SPDX-License-Identifier: Apache-2.0

package crdsafety

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/satchel-dev/satchel/internal/apply/plan/crdsafety/valueset"
)

// pair is two schemas for the same values.
type pair struct{ was, will schema }

func (p pair) property(name string) pair { return pair{p.was.property(name), p.will.property(name)} }
func (p pair) items() pair               { return pair{p.was.items(), p.will.items()} }
func (p pair) others() pair              { return pair{p.was.others(), p.will.others()} }

// about identifies a change at one place.
type about struct {
	kind    string // of the comparison: "type"
	subject string // within the kind, as the field that is required
}

// finding is one change at one place. Its message may differ between two pairs
// that both have it.
type finding struct {
	about
	says    string
	notable bool
}

// comparison goes through two schemas side by side.
type comparison struct {
	version     string
	statusApart bool // the status is written through its subresource only, before and after
	judgement   *Judgement
}

// walk compares now at a place and below it. Before is the earlier state: a finding that
// the pair had before is not reported. The error is the context's,
// or names an invalid schema.
func (c comparison) walk(ctx context.Context, at *place, now, before pair) error {
	if err := ctx.Err(); err != nil || now.was.state == absent || now.will.state == undeclared || c.judgement.full() {
		return err
	}
	found, err := now.judge()
	if err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	if len(found) > 0 && before.was.state != absent {
		known, err := before.judge()
		if err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		found = without(found, known)
	}
	c.add(at, found)
	if now.was.state != declared || now.will.state != declared {
		return nil
	}
	return c.children(ctx, at, now, before)
}

func (c comparison) children(ctx context.Context, at *place, now, before pair) error {
	declares := now.was.names()
	if now.was.is(preserveKeyword) && now.will.is(preserveKeyword) {
		declares = append(declares, now.will.names()...)
		slices.Sort(declares)
		declares = slices.Compact(declares)
	}
	for _, name := range declares {
		if err := c.walk(ctx, at.child(name), now.property(name), before.property(name)); err != nil {
			return err
		}
	}
	if items := now.items(); items.was.state == declared {
		if err := c.walk(ctx, at.child("items"), items, before.items()); err != nil {
			return err
		}
	}
	if others := now.others(); others.was.state == declared {
		return c.walk(ctx, at.child("additionalProperties"), others, before.others())
	}
	return nil
}

// without returns the findings that are not known.
func without(found, known []finding) []finding {
	all := map[about]bool{}
	for _, f := range known {
		all[f.about] = true
	}
	return slices.DeleteFunc(found, func(f finding) bool { return all[f.about] })
}

var errNoSchema = errors.New("what is there is no schema")

// judge compares two schemas, without those below them.
//
//	was there no value     nothing to lose
//	any value is kept      nothing is lost
//	no value is kept       removed
//	any value was kept     told, unless it still is
//	else                   compared
func (p pair) judge() ([]finding, error) {
	switch {
	case p.was.state == malformed || p.will.state == malformed:
		return nil, errNoSchema
	case p.was.state == absent, p.will.state == undeclared, p.was.state == undeclared && p.will.accepts():
		return nil, nil
	case p.will.state == absent:
		return []finding{{about: about{kind: "removal"}, says: "field removed"}}, nil
	case p.was.state == undeclared:
		return []finding{{about: about{kind: "description"}, says: "described now: other values than these are refused or dropped", notable: true}}, nil
	}
	found := required(p)
	if alike(p.was, p.will) {
		return found, nil
	}
	p = p.settled()
	if alike(p.was, p.will) {
		return found, nil
	}
	found = append(found, compositions(p)...)
	was, err := p.was.decoded()
	if err != nil {
		return nil, err
	}
	will, err := p.will.decoded()
	if err != nil {
		return nil, err
	}
	for _, compare := range comparators {
		found = append(found, compare(was, will)...)
	}
	return found, nil
}

// settled leaves out of the desired schema the constraints that exclude no value that was valid.
func (p pair) settled() pair {
	was, will := valueset.Normal(p.was.keywords), valueset.Normal(p.will.keywords)
	return pair{schema{state: p.was.state, keywords: was}, schema{state: p.will.state, keywords: valueset.Settle(was, will)}}
}

// required fields that were not required.
func required(p pair) []finding {
	will := p.will.required()
	if len(will) == 0 {
		return nil
	}
	before := valueset.Required(p.was.keywords)
	var found []finding
	for _, name := range will {
		if !before[name] && !p.was.always(name) {
			found = append(found, finding{about: about{"required", name}, says: fmt.Sprintf("new required field: %q", name)})
		}
	}
	return found
}
