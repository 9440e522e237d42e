// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/lint"
)

// validateOptions are the flags of validate.
type validateOptions struct {
	conversionOptions

	output output
	strict bool
	rukpak bool // also by the rules of RukPak for plain+v0
}

// verdict is the result of validate. Its JSON form is what -o json prints.
type verdict struct {
	Bundle   string         `json:"bundle"`
	Format   string         `json:"format"`
	Problems []lint.Problem `json:"problems"`
	Choices  []string       `json:"choices,omitempty"`
	Hint     string         `json:"hint,omitempty"` // the folder that was probably meant

	read      string // what was read, in words
	installed string // where it was examined as installed, in words; empty where it did not come so far
}

const validateHelp = `Reads a bundle from a folder or from an image, finds all problems at once, and reports the place of each, the rule that it
breaks and the remedy. No cluster is needed.

Errors prevent the installation of a bundle. They are the errors of render, and, for registry+v1, those of the suites of
operator-framework/api (olm-...) for a ClusterServiceVersion, its CustomResourceDefinitions, other objects, and the bundle
as a whole. Warnings are what the conversion leaves out or infers, removed versions of Kubernetes APIs, good practice, and
requirements of operatorhub.io. A problem that both report is listed once.

With --plain-v0 the bundle is also checked against RukPak's stricter rules for plain+v0: the folder manifests/ holds all
manifests, no other folders and no other files; there is at least one manifest; and each is an object with a name.
Problems have a line number then.

Without --install-namespace the bundle is examined as installed in a namespace that suits it. With it, the other flags
of render count too, so that problems of a choice are found as well. Choices, such as the namespaces that the operator
watches, are listed at the end and are no problems.

The output with -o json is one object, with a format that is stable between versions:

    {"bundle": "...", "format": "registry+v1", "problems": [{"severity": "error", "file": "manifests/a.yaml",
      "document": 1, "object": "Role a", "rule": "V13", "message": "...", "remedy": "..."}]}

"severity" is error or warning; "file" and "object" are empty and "document" is 0 where a problem is not of one. With
--plain-v0 there is "line", where it is known. There may be "choices", sentences about what is chosen when the bundle is
installed, and "hint", the folder that was probably meant.

Exit codes:

    0    no errors, and with --strict no warnings
    1    warnings, with --strict
    2    errors, wrong use, or the bundle could not be read
    130  interrupted by Ctrl-C`

func (a *app) validateCommand() *cobra.Command {
	var o validateOptions
	cmd := &cobra.Command{
		Use:     "validate PATH|IMAGE",
		GroupID: groupPreview,
		Short:   "Report all problems of a bundle, and possible improvements",
		Long:    validateHelp,
		Example: a.example(`
# Can this bundle be published?
satchel validate ./bundle --strict

# Does it suit my namespaces?
satchel validate quay.io/org/operator-bundle:v1.2.3 --install-namespace operators --watch-namespace shop

# Would RukPak accept it too?
satchel validate ./bundle --plain-v0

# For a script: all errors, a line each
satchel validate ./bundle -o json | jq -r '.problems[] | select(.severity == "error") | .message'`),
		RunE: func(cmd *cobra.Command, args []string) error {
			what, err := oneBundle(cmd, args)
			if err != nil {
				return err
			}
			if o.rukpak && o.format != "" && o.format != string(convert.PlainV0) {
				return usageError(cmd, "--plain-v0 is about bundles of that format, and --format says %s: use only one of them", o.format)
			}
			return a.validate(cmd.Context(), o, what)
		},
	}
	a.conversionFlags(cmd, &o.conversionOptions, "Namespace of the objects that name none, and of the operator.")
	a.outputFlag(cmd, &o.output, outputText, outputJSON)
	cmd.Flags().BoolVar(&o.strict, "strict", false, "Exit with 1 when there are warnings.")
	cmd.Flags().BoolVar(&o.rukpak, "plain-v0", false, "Check the bundle against the rules of RukPak for plain+v0.")
	return cmd
}

func (a *app) validate(ctx context.Context, o validateOptions, what string) error {
	v, err := a.examine(ctx, o, what)
	if err != nil {
		return err
	}
	if o.output == outputJSON {
		err = printValue(a.streams.Out, o.output, v)
	} else {
		_, err = fmt.Fprint(a.streams.Out, v.print(styleFor(a.streams.Out), widthOf(a.streams.Out)))
	}
	switch {
	case err != nil:
		return err
	case v.count(lint.Error) > 0:
		return errRefused
	case o.strict && len(v.Problems) > 0:
		return errNo
	}
	return nil
}

// examine reads a bundle and checks it.
func (a *app) examine(ctx context.Context, o validateOptions, what string) (v verdict, err error) {
	r, err := a.open(ctx, &o.conversionOptions, what)
	if err != nil {
		return verdict{}, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	report, err := a.examined(ctx, r.files, r.options.convert(), o.rukpak)
	if err != nil {
		return verdict{}, err
	}
	return r.judge(what, report), nil
}

// judge makes the verdict about an opened bundle.
func (r reading) judge(what string, report lint.Report) verdict {
	v := verdict{Bundle: what, read: r.from, Format: string(report.Format), Problems: append([]lint.Problem{}, report.Problems...), Choices: report.Choices}
	if report.InstallNamespace != "" {
		v.installed = installedIn(report.InstallNamespace, report.Watched)
	}
	for _, note := range append(r.notes(), r.options.meaningless(report.Format)...) {
		v.Problems = append(v.Problems, lint.Problem{Severity: lint.Warning, Rule: "file", Message: note, Remedy: "check whether that is intended"})
	}
	for i, p := range v.Problems {
		v.Problems[i].Message, v.Problems[i].Remedy = flagsFor(p.Message), flagsFor(p.Remedy)
	}
	if v.count(lint.Error) > 0 || report.Format != convert.RegistryV1 {
		v.Hint = r.meant(r.options.path, v.count(lint.Error) > 0)
	}
	return v
}

func (v verdict) count(severity lint.Severity) int {
	n := 0
	for _, p := range v.Problems {
		if p.Severity == severity {
			n++
		}
	}
	return n
}

// print writes the problems for people: errors, then warnings, each with what to do below it.
func (v verdict) print(s style, width int) string {
	var out strings.Builder
	if v.Hint != "" {
		writeWrapped(&out, "Hint: "+inline(v.Hint), "", "  ", width)
	}
	writeWrapped(&out, v.describe(), "", "", width)
	for _, part := range []struct {
		severity lint.Severity
		title    string
		color    color
	}{{lint.Error, "Errors", red}, {lint.Warning, "Warnings", yellow}} {
		total := v.count(part.severity)
		if total == 0 {
			continue
		}
		fmt.Fprintf(&out, "\n%s\n", s.paint(part.color, fmt.Sprintf("%s (%d):", part.title, total)))
		v.writeProblems(&out, part.severity, width)
	}
	if len(v.Choices) > 0 {
		fmt.Fprintf(&out, "\n%s\n", s.paint(bold, "When it is installed:"))
		for _, choice := range v.Choices {
			writeWrapped(&out, bounded(choice), "  ", "    ", width)
		}
	}
	fmt.Fprintf(&out, "\n%s\n", v.conclusion(s))
	return out.String()
}

func (v verdict) describe() string {
	text := "Read " + inline(v.read)
	if v.Format != "" {
		text += ": " + v.Format
	}
	if v.installed != "" {
		text += ", examined as installed in " + inline(v.installed)
	}
	return text + "."
}

// writeProblems writes the problems of one severity: the place once above its problems, and the remedy once below the
// problems that have the same.
func (v verdict) writeProblems(out *strings.Builder, severity lint.Severity, width int) {
	of := slices.DeleteFunc(slices.Clone(v.Problems), func(p lint.Problem) bool { return p.Severity != severity })
	shown, more := some(of)
	place := func(i int) string { return placeOf(shown[i]) }
	for i, p := range shown {
		if i == 0 || place(i) != place(i-1) {
			writeWrapped(out, place(i), "  ", "    ", width)
		}
		writeWrapped(out, bounded(p.Message)+" ["+inline(p.Rule)+"]", "    ", "      ", width)
		last := i == len(shown)-1 || place(i) != place(i+1) || p.Remedy != shown[i+1].Remedy
		if last && p.Remedy != "" {
			writeWrapped(out, "→ "+bounded(p.Remedy), "      ", "        ", width)
		}
	}
	if more != "" {
		writeWrapped(out, more, "  ", "    ", width)
	}
}

// placeOf says where a problem is: file, document where that is not the first, object.
func placeOf(p lint.Problem) string {
	var parts []string
	if p.File != "" {
		file := inline(p.File)
		if p.Line > 0 {
			file += ":" + strconv.Itoa(p.Line)
		}
		if p.Document > 1 {
			file += fmt.Sprintf(" (document %d)", p.Document)
		}
		parts = append(parts, file)
	}
	if p.Object != "" {
		parts = append(parts, bounded(p.Object))
	}
	if len(parts) == 0 {
		return "the bundle"
	}
	return strings.Join(parts, ": ")
}

func (v verdict) conclusion(s style) string {
	wrong, doubtful := v.count(lint.Error), v.count(lint.Warning)
	switch {
	case wrong > 0:
		return s.paint(red, "Refused: "+plural(wrong, "error")+", "+plural(doubtful, "warning")+".")
	case doubtful > 0:
		return s.paint(yellow, "Valid, with "+plural(doubtful, "warning")+".")
	}
	return s.paint(green, "Valid.")
}
