// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/fields"
	"github.com/satchel-dev/satchel/internal/apply/plan/ignore"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
)

// printSnippet writes what to put under spec.drift.
func printSnippet(a *kit.App, v *Preview) error {
	rules, left := Snippet(v)
	for _, line := range left {
		a.Note([]string{line})
	}
	if len(rules) == 0 {
		fmt.Fprintln(a.Streams.ErrOut, "No field of an object that was applied before differs.")
		return nil
	}
	text, err := printer.YamlText(map[string]any{"drift": map[string]any{"ignore": rules}})
	if err != nil {
		return fmt.Errorf("writing the rules: %w", err)
	}
	_, err = a.Streams.Out.Write(text)
	return err
}

// Snippet makes one rule for each object, and names the fields that cannot be ignored.
func Snippet(v *Preview) (rules []v1alpha1.IgnoreRule, left []string) {
	for _, o := range v.Objects {
		if !o.Applied || o.Before == nil || o.After == nil || o.Verb != string(plan.Update) && o.Verb != string(plan.Recreate) {
			continue
		}
		rule := v1alpha1.IgnoreRule{Target: &v1alpha1.ObjectSelector{
			Group: regexp.QuoteMeta(o.Group), Kind: regexp.QuoteMeta(o.Kind), Namespace: regexp.QuoteMeta(o.Namespace), Name: regexp.QuoteMeta(o.Name),
		}}
		for _, change := range o.Fields {
			pointer, ok := ignorable(o, change)
			if !ok {
				left = append(left, fmt.Sprintf("%s: %s is not in the bundle, or identifies the object, and cannot be ignored", o.title(), change.Path))
				continue
			}
			rule.Paths = append(rule.Paths, pointer)
		}
		rule.Paths = compacted(rule.Paths)
		if len(rule.Paths) > 0 {
			rules = append(rules, rule)
		}
	}
	return rules, left
}

// ignorable is the pointer to a field as the bundle has it.
func ignorable(o ObjectPreview, change fields.Change) (string, bool) {
	pointer, ok := change.Pointer(o.Desired)
	if !ok {
		return "", false
	}
	_, err := ignore.New([]ignore.Rule{{Paths: []string{pointer}}})
	return pointer, err == nil
}

// compacted sorts pointers and drops repetitions.
func compacted(pointers []string) []string {
	slices.Sort(pointers)
	return slices.Compact(pointers)
}
