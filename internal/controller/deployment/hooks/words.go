// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/health"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
)

// part selects the runs before, or after, the operation.
func part(runs []plan.HookRun, after bool) []plan.HookRun {
	var chosen []plan.HookRun
	for _, run := range runs {
		if run.After == after {
			chosen = append(chosen, run)
		}
	}
	return chosen
}

func comesAfter(event string) bool { return strings.HasPrefix(event, "post-") }

func hookID(of v1alpha1.HookReference) inventory.ID {
	return inventory.ID{Group: of.Group, Kind: of.Kind, Namespace: of.Namespace, Name: of.Name}
}

func referenceTo(run plan.HookRun) v1alpha1.HookReference {
	return v1alpha1.HookReference{Event: run.Event, Group: run.Group, Kind: run.ID.Kind, Namespace: run.Namespace, Name: run.Name}
}

func count32(runs []plan.HookRun) int32 {
	return int32(len(runs)) //nolint:gosec // G115: bounded by the objects of a bundle
}

func shortDigest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return hex.EncodeToString(sum[:8])
}

// hookFailure is the failure of a revision, or of a removal, by a failed hook.
func (in *Input) hookFailure(failed *v1alpha1.FailedHook) error {
	text := fmt.Sprintf("%s failed: %s", plan.HookText(failed.Event, hookID(failed.HookReference)), failed.Message)
	switch {
	case !in.Object.DeletionTimestamp.IsZero():
		return failure.Error{Reason: v1alpha1.ReasonHookFailed, Err: fmt.Errorf(
			"%s.\nNothing more is removed until it has run. Try it again with satchel reconcile %s -n %s; to remove without it, annotate the BundleDeployment with %s: Skip; to keep what is installed, set spec.deletionPolicy to Orphan",
			text, in.Object.Name, in.Object.Namespace, v1alpha1.DeleteHooksAnnotation)}
	case in.Resolved.Retries(in.Subject) && failed.Attempts < in.Object.Spec.Remediation.Retries:
		return failure.Error{Reason: v1alpha1.ReasonHookFailed, Err: fmt.Errorf("%s", text)}
	}
	return failure.Error{Reason: v1alpha1.ReasonHookFailed, Stalled: true, Err: fmt.Errorf(
		"%s.\nIt runs again when the source has another revision, the spec changes, or a reconcile is requested", text)}
}

func hookText(run plan.HookRun, how health.Completion) string {
	return "waiting for the " + run.String() + ": " + how.Message
}

// bare is a run without content.
func withoutContent(run plan.HookRun) plan.HookRun {
	run.Desired = nil
	return run
}
