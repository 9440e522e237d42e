// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/cli/catalogs"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/resolver"
	"github.com/satchel-dev/satchel/internal/view"
)

// choice is the output for programs.
type choice struct {
	Bundle  string `json:"bundle"`
	Version string `json:"version"`
	Image   string `json:"image"`
	Catalog string `json:"catalog"`
}

func (o *options) resolve(ctx context.Context, a *kit.App, asked *question) error {
	loaded, err := o.load(ctx, a, asked)
	if err != nil {
		return err
	}
	if err := asked.start(loaded.Catalogs); err != nil {
		return err
	}
	answer, err := resolver.Resolve(asked.query, loaded.Catalogs)
	var refusal *resolver.RefusalError
	if errors.As(err, &refusal) {
		asked.printRefusal(a, refusal, loaded.Similar(asked.query.Package))
		a.Note(loaded.Problems)
		return kit.ErrRefused
	}
	if err != nil {
		return err
	}
	a.Note(asked.notes(answer))
	if err := o.print(a, asked, answer, loaded.Problems); err != nil {
		return err
	}
	if o.write != "" {
		return o.writeAnswer(ctx, a, asked, answer)
	}
	if asked.change(answer) != "" {
		return kit.ErrNo
	}
	return nil
}

// load reads the package from the catalogs.
func (o *options) load(ctx context.Context, a *kit.App, asked *question) (loaded catalogs.Loaded, err error) {
	set, err := o.open(ctx, a, asked)
	defer func() { err = errors.Join(err, set.Close()) }()
	if err != nil {
		return loaded, err
	}
	return set.Load(ctx, asked.query.Package)
}

// open opens the catalogs of the flags, or those that the BundleDeployment searches. The caller closes the set, also with an error.
func (o *options) open(ctx context.Context, a *kit.App, asked *question) (*catalogs.Set, error) {
	if asked.deployment == nil {
		return o.catalogs.Open(ctx, a)
	}
	return o.catalogs.OpenFor(ctx, a, asked.deployment)
}

// print shows the answer.
func (o *options) print(a *kit.App, asked *question, answer resolver.Answer, problems []string) error {
	if o.output == printer.OutputText {
		a.Note(problems)
		_, err := fmt.Fprint(a.Streams.Out, asked.text(answer))
		return err
	}
	for _, d := range deprecations(answer) {
		a.Note([]string{"deprecated " + d})
	}
	a.Note(problems)
	return printer.PrintValue(a.Streams.Out, o.output, choice{
		Bundle: answer.Bundle, Version: answer.Version, Image: answer.Image, Catalog: answer.Catalog,
	})
}

// printRefusal begins with the message of OLM v1, alone in its line and without a prefix, so that scripts can compare
// it.
func (q *question) printRefusal(a *kit.App, refusal *resolver.RefusalError, further []string) {
	fmt.Fprintln(a.Streams.ErrOut, view.Inline(refusal.Text))
	for _, line := range append(refusal.Details(), further...) {
		if q.deployment == nil {
			line = inFlags.Replace(line)
		}
		fmt.Fprintf(a.Streams.ErrOut, "  %s\n", view.Inline(line))
	}
}

// inFlags turns what remedies say about fields of a BundleDeployment into flags.
var inFlags = strings.NewReplacer(
	"set version to", "give --version",
	"set downgrade to Allow", "give --downgrade Allow",
	"set upgradePolicy to SelfCertified", "give --upgrade-policy SelfCertified",
	"to channels", "with --channel",
	"leave channels out", "leave --channel out",
	"list in catalogs the ones that are", "give with --catalog only those that are",
	"list in catalogs the one that is", "give with --catalog only the one that is",
)

// text is the output for people.
func (q *question) text(answer resolver.Answer) string {
	var out strings.Builder
	line := func(label, value string) {
		if value != "" {
			fmt.Fprintf(&out, "%-10s %s\n", label, view.Inline(value))
		}
	}
	line("Change", q.change(answer))
	line("Bundle", answer.Bundle)
	line("Version", answer.Version)
	line("Release", answer.Release)
	line("Image", answer.Image)
	line("Catalog", answer.Catalog)
	line("Mirrors", strings.Join(answer.Mirrors, ", "))
	line("Channels", strings.Join(answer.Channels, ", "))
	for _, d := range deprecations(answer) {
		line("Deprecated", d)
	}
	if answer.Newest != nil {
		line("Newest", answer.Newest.String())
	}
	out.WriteString("\n")
	for _, funnel := range answer.Funnel {
		fmt.Fprintln(&out, view.Inline(funnel.String()))
	}
	return out.String()
}

// deprecations are those that concern the chosen bundle, one a line, such as: channel a: use b.
func deprecations(answer resolver.Answer) []string {
	var lines []string
	for _, d := range answer.Deprecations {
		what := "package"
		switch d.Schema {
		case catalog.SchemaChannel:
			what = "channel " + d.Name
		case catalog.SchemaBundle:
			what = "bundle " + d.Name
		}
		lines = append(lines, what+": "+strings.TrimSpace(d.Message))
	}
	return lines
}
