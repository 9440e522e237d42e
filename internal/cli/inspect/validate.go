// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/cli/bundle"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/lint"
	"github.com/satchel-dev/satchel/internal/view"
)

// validateOptions are the flags of validate.
type validateOptions struct {
	bundle.ConversionOptions

	output printer.Output
	strict bool
	rukpak bool // also by the rules of RukPak for plain+v0
}

// Verdict is the result of validate. Its JSON form is what -o json prints.
type Verdict struct {
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
of render count too, so that problems of a choice are found as well. With -f, the manifest of a BundleDeployment is
validated by the CRD, and then its bundle, or the given folder or image, as it installs it. Choices, such as the
namespaces that the operator watches, are listed at the end and are no problems.

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

// ValidateCommand returns the command validate.
func ValidateCommand(a *kit.App) *cobra.Command {
	var o validateOptions
	cmd := &cobra.Command{
		Use:     "validate PATH|IMAGE|CHART | validate -f FILE [PATH|IMAGE]",
		GroupID: kit.GroupPreview,
		Short:   "Report all problems of a bundle, and possible improvements",
		Long:    validateHelp,
		Example: a.Example(`
# Can this bundle be published?
satchel validate ./bundle --strict

# Does it suit my namespaces?
satchel validate quay.io/org/operator-bundle:v1.2.3 --install-namespace operators --watch-namespace shop

# Would RukPak accept it too?
satchel validate ./bundle --plain-v0

# For a script: all errors, a line each
satchel validate ./bundle -o json | jq -r '.problems[] | select(.severity == "error") | .message'`),
		RunE: func(cmd *cobra.Command, args []string) error {
			what, err := o.OneBundle(cmd, args)
			if err != nil {
				return err
			}
			if o.rukpak && o.Format != "" && o.Format != string(convert.PlainV0) {
				return kit.UsageError(cmd, "--plain-v0 is about bundles of that format, and --format says %s: use only one of them", o.Format)
			}
			return validate(cmd.Context(), a, o, what)
		},
	}
	bundle.ConversionFlags(a, cmd, &o.ConversionOptions, "Namespace of the objects that name none, and of the operator.")
	a.OutputFlag(cmd, &o.output, printer.OutputText, printer.OutputJSON)
	bundle.NameFlag(cmd, &o.ConversionOptions)
	cmd.Flags().BoolVar(&o.strict, "strict", false, "Exit with 1 when there are warnings.")
	cmd.Flags().BoolVar(&o.rukpak, "plain-v0", false, "Check the bundle against the rules of RukPak for plain+v0.")
	return cmd
}

func validate(ctx context.Context, a *kit.App, o validateOptions, what string) error {
	v, err := examine(ctx, a, o, what)
	if err != nil {
		return err
	}
	if o.output == printer.OutputJSON {
		err = printer.PrintValue(a.Streams.Out, o.output, v)
	} else {
		_, err = fmt.Fprint(a.Streams.Out, v.print(printer.StyleFor(a.Streams.Out), printer.WidthOf(a.Streams.Out)))
	}
	switch {
	case err != nil:
		return err
	case v.Count(lint.Error) > 0:
		return kit.ErrRefused
	case o.strict && len(v.Problems) > 0:
		return kit.ErrNo
	}
	return nil
}

// examine reads a bundle and checks it.
func examine(ctx context.Context, a *kit.App, o validateOptions, what string) (v Verdict, err error) {
	r, err := bundle.Open(ctx, a, &o.ConversionOptions, what)
	if err != nil {
		return Verdict{}, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	report, err := examined(ctx, a, r.Files, r.Options.Convert(), o.rukpak)
	if err != nil {
		return Verdict{}, err
	}
	return verdictOf(r, cmp.Or(what, r.From), report), nil
}

// verdictOf makes the verdict about an opened bundle.
func verdictOf(r bundle.Reading, what string, report lint.Report) Verdict {
	v := Verdict{Bundle: what, read: r.From, Format: string(report.Format), Problems: append([]lint.Problem{}, report.Problems...), Choices: report.Choices}
	if report.InstallNamespace != "" {
		v.installed = bundle.InstalledIn(report.InstallNamespace, report.Watched)
	}
	for _, note := range append(r.Notes(), r.Options.Meaningless(report.Format)...) {
		v.Problems = append(v.Problems, lint.Problem{Severity: lint.Warning, Rule: "file", Message: note, Remedy: "check whether that is intended"})
	}
	for i, p := range v.Problems {
		v.Problems[i].Message, v.Problems[i].Remedy = kit.FlagsFor(p.Message), kit.FlagsFor(p.Remedy)
	}
	if v.Count(lint.Error) > 0 || report.Format != convert.RegistryV1 {
		v.Hint = r.Meant(r.Options.Path, v.Count(lint.Error) > 0)
	}
	return v
}

// Count is the number of problems of a severity.
func (v Verdict) Count(severity lint.Severity) int {
	n := 0
	for _, p := range v.Problems {
		if p.Severity == severity {
			n++
		}
	}
	return n
}

// print writes the problems for people: errors, then warnings, each with what to do below it.
func (v Verdict) print(s printer.Style, width int) string {
	var out strings.Builder
	if v.Hint != "" {
		printer.WriteWrapped(&out, "Hint: "+view.Inline(v.Hint), "", "  ", width)
	}
	printer.WriteWrapped(&out, v.describe(), "", "", width)
	for _, part := range []struct {
		severity lint.Severity
		title    string
		color    printer.Color
	}{{lint.Error, "Errors", printer.Red}, {lint.Warning, "Warnings", printer.Yellow}} {
		total := v.Count(part.severity)
		if total == 0 {
			continue
		}
		fmt.Fprintf(&out, "\n%s\n", s.Paint(part.color, fmt.Sprintf("%s (%d):", part.title, total)))
		v.writeProblems(&out, part.severity, width)
	}
	if len(v.Choices) > 0 {
		fmt.Fprintf(&out, "\n%s\n", s.Paint(printer.Bold, "When it is installed:"))
		for _, choice := range v.Choices {
			printer.WriteWrapped(&out, view.Bounded(choice), "  ", "    ", width)
		}
	}
	fmt.Fprintf(&out, "\n%s\n", v.conclusion(s))
	return out.String()
}

func (v Verdict) describe() string {
	text := "Read " + view.Inline(v.read)
	if v.Format != "" {
		text += ": " + v.Format
	}
	if v.installed != "" {
		text += ", examined as installed in " + view.Inline(v.installed)
	}
	return text + "."
}

// writeProblems writes the problems of one severity: the place once above its problems, and the remedy once below the
// problems that have the same.
func (v Verdict) writeProblems(out *strings.Builder, severity lint.Severity, width int) {
	of := slices.DeleteFunc(slices.Clone(v.Problems), func(p lint.Problem) bool { return p.Severity != severity })
	shown, more := some(of)
	place := func(i int) string { return placeOf(shown[i]) }
	for i, p := range shown {
		if i == 0 || place(i) != place(i-1) {
			printer.WriteWrapped(out, place(i), "  ", "    ", width)
		}
		printer.WriteWrapped(out, view.Bounded(p.Message)+" ["+view.Inline(p.Rule)+"]", "    ", "      ", width)
		last := i == len(shown)-1 || place(i) != place(i+1) || p.Remedy != shown[i+1].Remedy
		if last && p.Remedy != "" {
			printer.WriteWrapped(out, "→ "+view.Bounded(p.Remedy), "      ", "        ", width)
		}
	}
	if more != "" {
		printer.WriteWrapped(out, more, "  ", "    ", width)
	}
}

// placeOf says where a problem is: file, document where that is not the first, object.
func placeOf(p lint.Problem) string {
	var parts []string
	if p.File != "" {
		file := view.Inline(p.File)
		if p.Line > 0 {
			file += ":" + strconv.Itoa(p.Line)
		}
		if p.Document > 1 {
			file += fmt.Sprintf(" (document %d)", p.Document)
		}
		parts = append(parts, file)
	}
	if p.Object != "" {
		parts = append(parts, view.Bounded(p.Object))
	}
	if len(parts) == 0 {
		return "the bundle"
	}
	return strings.Join(parts, ": ")
}

func (v Verdict) conclusion(s printer.Style) string {
	wrong, doubtful := v.Count(lint.Error), v.Count(lint.Warning)
	switch {
	case wrong > 0:
		return s.Paint(printer.Red, "Refused: "+view.Plural(wrong, "error")+", "+view.Plural(doubtful, "warning")+".")
	case doubtful > 0:
		return s.Paint(printer.Yellow, "Valid, with "+view.Plural(doubtful, "warning")+".")
	}
	return s.Paint(printer.Green, "Valid.")
}
