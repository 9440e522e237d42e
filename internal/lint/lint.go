// SPDX-License-Identifier: Apache-2.0

// Package lint says everything that is wrong with a bundle, or could be better: what the converter refuses or warns of,
// and what the suites of operator-framework/api find in a registry+v1 bundle. Bundles are not trusted: whatever they
// hold, the answer is a bounded list of problems.
package lint

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"

	"github.com/satchel-dev/satchel/internal/convert"
)

// Severity says how bad a problem is.
type Severity string

// Severities.
const (
	// Error stands for what keeps the bundle from being installed, by Satchel or, as operator-framework/api has it, by OLM.
	Error Severity = "error"
	// Warning stands for what should be looked at, although the bundle can be installed.
	Warning Severity = "warning"
)

// Problem is one thing that is wrong, where, by which rule, and what to do about it. It never holds what a manifest gives
// as data of a Secret.
type Problem struct {
	Severity Severity `json:"severity"`
	File     string   `json:"file"`
	Document int      `json:"document"`
	Line     int      `json:"line,omitempty"` // 0 where it is not known
	Object   string   `json:"object"`
	Rule     string   `json:"rule"`
	Message  string   `json:"message"`
	Remedy   string   `json:"remedy"`
}

// Report is what was found.
type Report struct {
	// Format of the bundle; empty when it could not be told.
	Format convert.Format
	// Problems, errors first, each by file and document, without repetitions; at most a thousand of each source.
	Problems []Problem
	// InstallNamespace is the one that the bundle was converted for, and Watched what the operator watches then; see there.
	InstallNamespace string
	Watched          []string
	// Choices say, in sentences, what is chosen when the bundle is installed. They are no problems.
	Choices []string
}

// Bundle looks at a bundle. Without an install namespace in the options it is converted for one that suits it, so that
// only what is wrong with the bundle itself is found.
func Bundle(files fs.FS, o convert.Options) Report {
	root, format, err := convert.Enter(files, o)
	if err != nil {
		return Report{Problems: order(refusals(err))}
	}
	t := &tree{}
	if format == convert.RegistryV1 {
		t = readTree(root, o.Limits)
	}
	o = suitable(o, t)
	problems, watched := conversion(files, o)
	if t.bundle != nil {
		problems = append(problems, unreported(t.examine(), problems)...)
	}
	return Report{Format: format, Problems: order(problems), InstallNamespace: o.InstallNamespace, Watched: watched, Choices: t.choices()}
}

// conversion is what the converter says, and what is watched by what it makes.
func conversion(files fs.FS, o convert.Options) (problems []Problem, watched []string) {
	result, err := convert.Convert(files, o)
	if err != nil {
		return refusals(err), nil
	}
	problems = make([]Problem, 0, len(result.Warnings))
	for _, w := range result.Warnings {
		problems = append(problems, warning(w))
	}
	return append(problems, ForOLMOnly(result)...), Watched(result)
}

// refusals are the problems in an error of the converter.
func refusals(err error) []Problem {
	var refused *convert.Error
	if !errors.As(err, &refused) {
		return []Problem{{Severity: Error, Rule: "conversion", Message: err.Error()}}
	}
	problems := make([]Problem, 0, len(refused.Problems))
	for _, p := range refused.Problems {
		problems = append(problems, Problem{Severity: Error, File: p.File, Document: p.Document, Object: p.Object, Rule: p.Rule, Message: p.Message, Remedy: p.Remedy})
	}
	return problems
}

// order sorts problems, errors first, and drops repetitions: the same words about the same object, whoever says them.
func order(problems []Problem) []Problem {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.File, b.File), cmp.Compare(a.Document, b.Document),
			cmp.Compare(a.Object, b.Object), cmp.Compare(a.Message, b.Message), cmp.Compare(a.Rule, b.Rule))
	})
	said := map[Problem]bool{}
	return slices.DeleteFunc(problems, func(p Problem) bool {
		words := Problem{File: p.File, Document: p.Document, Object: p.Object, Message: p.Message}
		again := said[words]
		said[words] = true
		return again
	})
}
