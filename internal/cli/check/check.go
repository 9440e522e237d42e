// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
)

// checkOptions are the flags of check.
type checkOptions struct {
	output    printer.Output
	pre       bool
	namespace string // of the controllers
}

// Command returns the command check.
func Command(a *kit.App) *cobra.Command {
	var o checkOptions
	cmd := &cobra.Command{
		Use:     "check",
		GroupID: kit.GroupOperate,
		Short:   "Check that Satchel works, or can be installed",
		Long: `Checks Satchel's installation with your permissions: that its CRDs match this program, its controllers and their leader
election, whether artifacts are served, whether the deployment controller may impersonate the tenants'
ServiceAccounts, the admission policies, whether Argo CD takes installed objects for its own, and which deployments
and sources are not Ready. With --pre it checks whether the cluster meets the requirements of an installation, and
whether you have the permissions to install.

Signs: ✓ in order, ! worth a look, ✗ broken, ? could not be found out.

Exit codes:

    0    nothing is broken (there may be warnings)
    1    something is broken
    2    failed: no access to the cluster
    130  interrupted by Ctrl-C`,
		Example: a.Example(`
# Before satchel install
satchel check --pre

# After it, or when something is wrong
satchel check

# For a script
satchel check -o json | jq '.checks[] | select(.state == "Failed")'`),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return kit.UsageError(cmd, "check takes no arguments, got %s", kit.Given(args))
			}
			return check(cmd.Context(), a, o)
		},
	}
	a.OutputFlag(cmd, &o.output, printer.OutputText, printer.OutputJSON, printer.OutputYAML)
	cmd.Flags().BoolVar(&o.pre, "pre", false, "Check whether Satchel can be installed.")
	cmd.Flags().StringVar(&o.namespace, "system-namespace", kit.SystemNamespace, "Where the controllers are, or will be.")
	a.CompleteFlag(cmd, "system-namespace", a.CompleteNamespaces)
	return cmd
}

// State is the result of a check.
type State string

// States of checks.
const (
	CheckOK      State = "OK"
	CheckWarning State = "Warning"
	CheckFailed  State = "Failed"
	CheckUnknown State = "Unknown"
)

// checkMarks are the signs and colours of the states.
var checkMarks = map[State]printer.Cell{
	CheckOK: {Text: "✓", Color: printer.Green}, CheckWarning: {Text: "!", Color: printer.Yellow}, CheckFailed: {Text: "✗", Color: printer.Red}, CheckUnknown: {Text: "?", Color: printer.Yellow},
}

// Finding is what one check found.
type Finding struct {
	Check  string `json:"check"`
	State  State  `json:"state"`
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"`
}

// Report is what check prints.
type Report struct {
	Program   kit.VersionInfo `json:"program"`
	Namespace string          `json:"namespace"`
	Checks    []Finding       `json:"checks"`
}

// Examiner runs the checks.
type Examiner struct {
	*kit.Explorer
	Namespace string // of the controllers
	Discovery *discovery.DiscoveryClient
	Raw       rest.Interface
	Now       time.Time
	Report    Report
}

func (e *Examiner) add(check string, state State, hint, format string, args ...any) {
	e.Report.Checks = append(e.Report.Checks, Finding{Check: check, State: state, Hint: hint, Detail: fmt.Sprintf(format, args...)})
}

// NewExaminer prepares the checks.
func NewExaminer(a *kit.App, namespace string) (*Examiner, error) {
	x, err := a.Explore()
	if err != nil {
		return nil, err
	}
	e := &Examiner{Explorer: x, Namespace: namespace, Now: a.Now(), Report: Report{Program: a.Version, Namespace: namespace, Checks: []Finding{}}}
	if e.Discovery, err = discovery.NewDiscoveryClientForConfig(x.Config); err != nil {
		return nil, fmt.Errorf("preparing the connection to the cluster: %w", err)
	}
	e.Raw = e.Discovery.RESTClient()
	return e, nil
}

func check(ctx context.Context, a *kit.App, o checkOptions) error {
	e, err := NewExaminer(a, o.namespace)
	if err != nil {
		return err
	}
	if err := e.Examine(ctx, o.pre); err != nil {
		return err
	}
	if o.output != printer.OutputText {
		if err := printer.PrintValue(a.Streams.Out, o.output, e.Report); err != nil {
			return err
		}
	} else {
		fmt.Fprint(a.Streams.Out, e.Report.Print(printer.StyleFor(a.Streams.Out)))
	}
	if e.Report.Broken() {
		return kit.ErrNo
	}
	return nil
}

// Examine runs all checks. It fails only where the cluster does not answer at all.
func (e *Examiner) Examine(ctx context.Context, pre bool) error {
	if err := e.kubernetes(); err != nil {
		return err
	}
	checks := []func(context.Context){e.definitions, e.controllers, e.leaders, e.artifacts, e.impersonation, e.guards, e.approvers, e.argo, e.rollouts, e.troubles}
	if pre {
		checks = []func(context.Context){e.admission, e.names, e.permissions, e.volumes, e.present}
	}
	for _, check := range checks {
		check(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// Broken tells whether a check failed.
func (r Report) Broken() bool {
	for _, f := range r.Checks {
		if f.State == CheckFailed {
			return true
		}
	}
	return false
}

// Print writes the report for people.
func (r Report) Print(s printer.Style) string {
	var out strings.Builder
	for _, f := range r.Checks {
		mark := checkMarks[f.State]
		fmt.Fprintf(&out, "%s %s: %s\n", s.Paint(mark.Color, mark.Text), s.Paint(printer.Bold, f.Check), view.Bounded(f.Detail))
		if f.Hint != "" && f.State != CheckOK {
			fmt.Fprintf(&out, "  %s %s\n", s.Paint(printer.Bold, "What to do:"), view.Printable(f.Hint))
		}
	}
	return out.String()
}
