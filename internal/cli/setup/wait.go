// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/cli/check"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/install"
	"github.com/satchel-dev/satchel/internal/view"
)

// awaitInstallation waits until the CRDs are served and the controllers run.
func (i *installer) awaitInstallation(ctx context.Context) error {
	if !i.flags.wait {
		return nil
	}
	for _, kind := range []string{"CustomResourceDefinition", "Deployment"} {
		for _, p := range i.pieces {
			if p.id.Kind != kind {
				continue
			}
			if err := i.app.WaitFor(ctx, targetOf(p.id), i.flags.timeout, func() (kit.WaitState, error) { return i.settled(ctx, p) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// settled tells whether a CRD is established, or a Deployment is rolled out.
func (i *installer) settled(ctx context.Context, p *piece) (kit.WaitState, error) {
	found, err := i.One(ctx, p.resource, p.id.Namespace, p.id.Name, true)
	switch {
	case apierrors.IsNotFound(err):
		return kit.WaitState{Never: true, Text: "it was deleted meanwhile; run this again"}, nil
	case err != nil:
		return kit.WaitState{}, fmt.Errorf("reading %s: %w", p.id, err)
	case p.id.Kind == "Deployment":
		return rolledOut(ctx, i.Examiner, found.Body), nil
	case check.ConditionTrue(found.Body, "Established"):
		return kit.WaitState{Done: true, Text: "established"}, nil
	}
	if _, reason, message := check.ConditionOf(found.Body, "NamesAccepted"); message != "" {
		return kit.WaitState{Text: "not established yet: " + view.Inline(reason+" "+message)}, nil
	}
	return kit.WaitState{Text: "not established yet"}, nil
}

// rolledOut tells whether all replicas of a Deployment run as it says.
func rolledOut(ctx context.Context, e *check.Examiner, d *unstructured.Unstructured) kit.WaitState {
	count := func(path ...string) int64 {
		n, _, _ := unstructured.NestedInt64(d.Object, path...)
		return n
	}
	wanted, updated, available := count("spec", "replicas"), count("status", "updatedReplicas"), count("status", "availableReplicas")
	seen := count("status", "observedGeneration") >= d.GetGeneration()
	if seen && updated >= wanted && available >= wanted && count("status", "replicas") <= wanted {
		return kit.WaitState{Done: true, Text: view.Plural(int(available), "replica") + " available, image " + strings.Join(check.ImagesOf(d), ", ")}
	}
	if !seen {
		return kit.WaitState{Text: "not seen by the cluster's controllers yet"}
	}
	return kit.WaitState{Text: fmt.Sprintf("%d of %d replicas are available%s", min(available, updated), wanted, view.OneLine(e.PodTrouble(ctx, d), 0))}
}

// irreplaceable are kinds that an upgrade never removes, because their content would be lost.
var irreplaceable = map[string]string{
	"CustomResourceDefinition": "all resources of the kind would be deleted with it",
	"PersistentVolumeClaim":    "the data of the volume would be lost with it",
	"Namespace":                "everything in it would be deleted with it",
}

// removeObsolete deletes what an earlier version installed and this one does not, and returns what of it stays.
func (i *installer) removeObsolete(ctx context.Context) (left []install.ID, err error) {
	for _, id := range i.obsolete {
		if why := irreplaceable[id.Kind]; why != "" {
			i.tell(PieceKept, id, "it is no longer used, but "+why)
			left = append(left, id)
			continue
		}
		removed, err := removeObject(ctx, i.Examiner, id)
		if err != nil {
			return nil, err
		}
		if removed {
			i.tell(pieceRemoved, id, "this version does not have it")
		}
	}
	return left, nil
}

// removeObject deletes an object; false where there is none.
func removeObject(ctx context.Context, e *check.Examiner, id install.ID) (bool, error) {
	mapping, err := e.Mapper.RESTMapping(id.GroupVersionKind().GroupKind(), id.Version)
	if apimeta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for the kind of %s: %w", id, err)
	}
	foreground := metav1.DeletePropagationForeground
	err = e.Bodies.Resource(mapping.Resource).Namespace(id.Namespace).Delete(ctx, id.Name, metav1.DeleteOptions{PropagationPolicy: &foreground})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("deleting %s: %w", id, err)
	}
	return true, nil
}

// installStep is what happens to one object, as --dry-run prints it.
type installStep struct {
	install.ID

	Outcome pieceOutcome `json:"outcome"`
	Why     string       `json:"why,omitempty"`
}

// InstallPlan is what --dry-run prints.
type InstallPlan struct {
	Version   string          `json:"version"`
	Installed string          `json:"installed,omitempty"`
	Options   install.Options `json:"options"`
	Objects   []installStep   `json:"objects"`
}

func (i *installer) printPlan() error {
	p := InstallPlan{Version: i.app.Version.Version, Options: i.chosen, Objects: []installStep{}}
	if i.before != nil {
		p.Installed = i.before.Version
	}
	for _, piece := range i.pieces {
		p.Objects = append(p.Objects, installStep{ID: piece.id, Outcome: piece.outcome, Why: piece.recreate})
	}
	for _, id := range i.obsolete {
		outcome, why := pieceRemoved, "this version does not have it"
		if keeps := irreplaceable[id.Kind]; keeps != "" {
			outcome, why = PieceKept, "it is no longer used, but "+keeps
		}
		p.Objects = append(p.Objects, installStep{ID: id, Outcome: outcome, Why: why})
	}
	if i.flags.output != printer.OutputText {
		return printer.PrintValue(i.app.Streams.Out, i.flags.output, p)
	}
	for _, step := range p.Objects {
		if step.Outcome != pieceUnchanged {
			i.tell(step.Outcome, step.ID, step.Why)
		}
	}
	fmt.Fprintf(i.app.Streams.Out, "%s Nothing was changed: this was a dry run.\n", i.counts())
	return nil
}

// counts says how many objects there are, by outcome.
func (i *installer) counts() string {
	number := map[pieceOutcome]int{}
	for _, p := range i.pieces {
		number[p.outcome]++
	}
	text := view.Plural(len(i.pieces), "object")
	for _, outcome := range []pieceOutcome{pieceCreated, pieceChanged, pieceRecreated, pieceUnchanged} {
		if number[outcome] > 0 {
			text += fmt.Sprintf(", %d %s", number[outcome], outcome)
		}
	}
	return text + "."
}

// summary is what was done.
func (i *installer) summary() string {
	text := fmt.Sprintf("Satchel %s is installed in the namespace %s: %s", i.app.Version.Version, i.chosen.Namespace, i.counts())
	if i.before != nil && i.before.Version != i.app.Version.Version {
		text = fmt.Sprintf("Satchel %s is upgraded to %s in the namespace %s: %s", i.before.Version, i.app.Version.Version, i.chosen.Namespace, i.counts())
	}
	if !i.flags.wait {
		text += " The controllers were not waited for; see " + i.app.Name + " check."
	}
	return text
}
