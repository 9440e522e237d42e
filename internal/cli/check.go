// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// systemNamespace is where the controllers are, unless a flag says otherwise.
const systemNamespace = "satchel-system"

// checkOptions are the flags of check.
type checkOptions struct {
	output    output
	pre       bool
	namespace string // of the controllers
}

func (a *app) checkCommand() *cobra.Command {
	var o checkOptions
	cmd := &cobra.Command{
		Use:     "check",
		GroupID: groupOperate,
		Short:   "Check that Satchel works, or can be installed",
		Long: `Checks Satchel's installation with your permissions: that its CRDs match this program, its controllers and their leader
election, whether artifacts are served, whether the deployment controller may impersonate the tenants' ServiceAccounts,
the admission policies, and which deployments and sources are not Ready. With --pre it checks whether the cluster meets
the requirements of an installation, and whether you have the permissions to install.

Signs: ✓ in order, ! worth a look, ✗ broken, ? could not be found out.

Exit codes:

    0    nothing is broken (there may be warnings)
    1    something is broken
    2    failed: no access to the cluster
    130  interrupted by Ctrl-C`,
		Example: a.example(`
# Before satchel install
satchel check --pre

# After it, or when something is wrong
satchel check

# For a script
satchel check -o json | jq '.checks[] | select(.state == "Failed")'`),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError(cmd, "check takes no arguments, got %s", given(args))
			}
			return a.check(cmd.Context(), o)
		},
	}
	a.outputFlag(cmd, &o.output, outputText, outputJSON, outputYAML)
	cmd.Flags().BoolVar(&o.pre, "pre", false, "Check whether Satchel can be installed.")
	cmd.Flags().StringVar(&o.namespace, "system-namespace", systemNamespace, "Where the controllers are, or will be.")
	a.completeFlag(cmd, "system-namespace", a.completeNamespaces)
	return cmd
}

// checkState is the result of a check.
type checkState string

// States of checks.
const (
	checkOK      checkState = "OK"
	checkWarning checkState = "Warning"
	checkFailed  checkState = "Failed"
	checkUnknown checkState = "Unknown"
)

// checkMarks are the signs and colours of the states.
var checkMarks = map[checkState]cell{
	checkOK: {"✓", green}, checkWarning: {"!", yellow}, checkFailed: {"✗", red}, checkUnknown: {"?", yellow},
}

// finding is what one check found.
type finding struct {
	Check  string     `json:"check"`
	State  checkState `json:"state"`
	Detail string     `json:"detail"`
	Hint   string     `json:"hint,omitempty"`
}

// checkReport is what check prints.
type checkReport struct {
	Program   VersionInfo `json:"program"`
	Namespace string      `json:"namespace"`
	Checks    []finding   `json:"checks"`
}

// examiner runs the checks.
type examiner struct {
	*explorer
	namespace string // of the controllers
	discovery *discovery.DiscoveryClient
	raw       rest.Interface
	now       time.Time
	report    checkReport
}

func (e *examiner) add(check string, state checkState, hint, format string, args ...any) {
	e.report.Checks = append(e.report.Checks, finding{Check: check, State: state, Hint: hint, Detail: fmt.Sprintf(format, args...)})
}

// newExaminer prepares the checks.
func (a *app) newExaminer(namespace string) (*examiner, error) {
	x, err := a.explore()
	if err != nil {
		return nil, err
	}
	e := &examiner{explorer: x, namespace: namespace, now: a.now(), report: checkReport{Program: a.version, Namespace: namespace, Checks: []finding{}}}
	if e.discovery, err = discovery.NewDiscoveryClientForConfig(x.config); err != nil {
		return nil, fmt.Errorf("preparing the connection to the cluster: %w", err)
	}
	e.raw = e.discovery.RESTClient()
	return e, nil
}

func (a *app) check(ctx context.Context, o checkOptions) error {
	e, err := a.newExaminer(o.namespace)
	if err != nil {
		return err
	}
	if err := e.examine(ctx, o.pre); err != nil {
		return err
	}
	if o.output != outputText {
		if err := printValue(a.streams.Out, o.output, e.report); err != nil {
			return err
		}
	} else {
		fmt.Fprint(a.streams.Out, e.report.print(styleFor(a.streams.Out)))
	}
	if e.report.broken() {
		return errNo
	}
	return nil
}

// examine runs all checks. It fails only where the cluster does not answer at all.
func (e *examiner) examine(ctx context.Context, pre bool) error {
	if err := e.kubernetes(); err != nil {
		return err
	}
	checks := []func(context.Context){e.definitions, e.controllers, e.leaders, e.artifacts, e.impersonation, e.guards, e.approvers, e.troubles}
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

func (r checkReport) broken() bool {
	for _, f := range r.Checks {
		if f.State == checkFailed {
			return true
		}
	}
	return false
}

// print writes the report for people.
func (r checkReport) print(s style) string {
	var out strings.Builder
	for _, f := range r.Checks {
		mark := checkMarks[f.State]
		fmt.Fprintf(&out, "%s %s: %s\n", s.paint(mark.color, mark.text), s.paint(bold, f.Check), bounded(f.Detail))
		if f.Hint != "" && f.State != checkOK {
			fmt.Fprintf(&out, "  %s %s\n", s.paint(bold, "What to do:"), printable(f.Hint))
		}
	}
	return out.String()
}
