// SPDX-License-Identifier: Apache-2.0

// Package lint reports all problems of a bundle, and possible improvements: errors and warnings of the converter, and findings
// of the suites of operator-framework/api in a registry+v1 bundle. Bundles are not trusted: for any content the result is a
// bounded list of problems.
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
	// Error is a problem that prevents the installation, by Satchel or, according to operator-framework/api, by OLM.
	Error Severity = "error"
	// Warning is a problem that should be checked, although the bundle can be installed.
	Warning Severity = "warning"
)

// Problem is one problem with its place, rule and remedy. It never contains data of a Secret.
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

// Bundle checks a bundle. Without an install namespace in the options it is converted for one that suits it, so that only
// problems of the bundle itself are found.
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

// conversion returns the problems of the conversion, and the namespaces that the converted operator watches.
func conversion(files fs.FS, o convert.Options) (problems []Problem, watched []string) {
	result, err := convert.Convert(files, o)
	if err != nil {
		return refusals(err), nil
	}
	problems = make([]Problem, 0, len(result.Warnings))
	for _, w := range result.Warnings {
		problems = append(problems, warning(w))
	}
	return slices.Concat(problems, ForOLMOnly(result), subjectsElsewhere(result)), Watched(result)
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

// order sorts problems, errors first, and drops duplicates: the same message about the same object, from any validator.
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
