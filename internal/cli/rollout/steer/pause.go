// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/view"
)

// PauseCommand returns the command rollout pause.
func PauseCommand(a *kit.App) *cobra.Command {
	var o steering
	cmd := &cobra.Command{
		Use:   "pause NAME...",
		Short: "Start no further cluster, until resumed",
		Long: `Sets spec.suspend: no cluster is started or removed any more, nor brought back. Clusters that were started land, and drift
is corrected on every cluster at the revision that it has. To bring back what was started, use rollout abort.

Exit codes:

    0    paused (or was paused already)
    2    failed: not found, no access
    130  interrupted by Ctrl-C`,
		Example: a.Example(`
# Stop one rollout
satchel rollout pause cert-manager -n fleet

# Stop all of them, everywhere
satchel rollout pause --all -A

# By a commit
satchel rollout pause cert-manager -n fleet --export`),
		ValidArgsFunction: completeMany(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd, args); err != nil {
				return err
			}
			return steer(cmd.Context(), a, o, args, pause)
		},
	}
	o.Flags(cmd)
	cmd.Flags().BoolVarP(&o.everywhere, "all-namespaces", "A", false, "Of all namespaces, with --all or -l.")
	o.writingFlags(cmd)
	return cmd
}

func pause(o *v1alpha1.BundleRollout) (change, error) {
	if o.Spec.Suspend {
		return change{done: "paused already"}, nil
	}
	return change{
		spec: map[string]any{"paused": true}, done: "paused", commit: "commit paused: true there",
		then: "No further cluster is started. What was started lands, and drift is corrected.",
	}, nil
}

// check refuses names together with --all, and neither.
func (o *steering) check(cmd *cobra.Command, args []string) error {
	targets := make([]string, 0, len(args)+1)
	targets = append(append(targets, kit.Rollouts.Word), args...)
	if _, err := o.Targets(cmd, targets); err != nil {
		return err
	}
	if o.everywhere && len(args) > 0 {
		return kit.UsageError(cmd, "a name means one object of one namespace: leave -A or the name out")
	}
	return nil
}

// ResumeCommand returns the command rollout resume.
func ResumeCommand(a *kit.App) *cobra.Command {
	var o steering
	cmd := &cobra.Command{
		Use:   "resume NAME...",
		Short: "Go on with paused BundleRollouts, or follow the source again after an abort",
		Long: `Removes spec.suspend. With --follow it also removes spec.revision, which an abort or a user has set, so that the rollout
follows its source again.

It refuses where a GitOps tool has set paused: true, because that would set it again: remove it there.

Exit codes:

    0    resumed (or was not paused)
    2    failed: not found, no access, paused by a GitOps tool
    130  interrupted by Ctrl-C`,
		Example: a.Example(`
# Go on
satchel rollout resume cert-manager -n fleet

# After an abort: follow the source again
satchel rollout resume cert-manager -n fleet --follow`),
		ValidArgsFunction: completeMany(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd, args); err != nil {
				return err
			}
			return steer(cmd.Context(), a, o, args, func(object *v1alpha1.BundleRollout) (change, error) { return resume(object, o) })
		},
	}
	o.Flags(cmd)
	cmd.Flags().BoolVarP(&o.everywhere, "all-namespaces", "A", false, "Of all namespaces, with --all or -l.")
	cmd.Flags().BoolVar(&o.follow, "follow", false, "Remove spec.revision as well, to follow the source.")
	o.writingFlags(cmd)
	return cmd
}

func resume(object *v1alpha1.BundleRollout, o steering) (change, error) {
	spec := map[string]any{}
	wanted := change{spec: spec, done: "resumed"}
	if object.Spec.Suspend {
		if by := setBy(object, "paused"); by != "" && !o.export {
			return change{}, fmt.Errorf("%s %s/%s is paused by %s, which would pause it again: remove paused: true there", v1alpha1.BundleRolloutKind, object.Namespace, object.Name, view.Inline(by))
		}
		spec["paused"] = nil
	}
	if o.follow && object.Spec.Revision != "" {
		if by := setBy(object, "revision"); by != "" && !o.export {
			return change{}, fmt.Errorf("spec.revision of %s %s/%s is set by %s, which would set it again: remove it there", v1alpha1.BundleRolloutKind, object.Namespace, object.Name, view.Inline(by))
		}
		spec["revision"] = nil
		wanted.done += ", and follows its source again"
	}
	switch {
	case len(spec) == 0 && object.Spec.Revision != "" && !o.follow:
		wanted.done = "is not paused; it stays at revision " + view.Inline(object.Spec.Revision) + ", and with --follow it follows its source again"
	case len(spec) == 0:
		wanted.done = "is not paused"
	case object.Spec.Revision != "" && !o.follow:
		wanted.then = "It stays at revision " + view.Inline(object.Spec.Revision) + "; with --follow it follows its source again."
	}
	return wanted, nil
}

// setBy is the GitOps tool that has set a field of the spec; empty if none has.
func setBy(o *v1alpha1.BundleRollout, field string) string {
	tool := kit.Deliverer(o)
	if tool == "" {
		return ""
	}
	for _, entry := range o.ManagedFields {
		if entry.Manager != kit.FieldManager && entry.Subresource == "" && hasField(entry.FieldsV1, field) {
			return tool
		}
	}
	return ""
}

func hasField(fields *metav1.FieldsV1, field string) bool {
	var owned struct {
		Spec map[string]json.RawMessage `json:"f:spec"`
	}
	if fields == nil || json.Unmarshal(fields.GetRawBytes(), &owned) != nil {
		return false
	}
	_, has := owned.Spec["f:"+field]
	return has
}
