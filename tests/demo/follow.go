// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

const (
	// poll is how often the demo looks.
	poll = 200 * time.Millisecond
	// limit is how long it waits for anything that the controllers have to do.
	limit = 2 * time.Minute
)

// await looks until the check returns an empty string, which says what is missing until then. On the way it
// tells how the conditions of Satchel's objects change.
func (d *demo) await(ctx context.Context, what string, check func(context.Context) (missing string, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		err := d.tellConditions(ctx)
		missing := ""
		if err == nil {
			missing, err = check(ctx)
		}
		if err == nil && missing == "" {
			return d.tellConditions(ctx)
		}
		if err != nil {
			missing = err.Error()
		}
		d.waitingf("still waiting for %s: %s", what, missing)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s for up to %s: %s", what, limit, missing)
		case <-d.controllers.ended:
			return errors.Join(fmt.Errorf("waiting for %s", what), d.controllers.problem)
		}
	}
}

// tellConditions prints each condition that changed since it was told last.
func (d *demo) tellConditions(ctx context.Context) error {
	var sources v1alpha1.BundleSourceList
	if err := d.cluster.List(ctx, &sources, client.InNamespace(samplesNamespace)); err != nil {
		return fmt.Errorf("listing BundleSources: %w", err)
	}
	for _, s := range sources.Items {
		d.tell("source "+s.Name, s.Status.Conditions)
	}
	var deployments v1alpha1.BundleDeploymentList
	if err := d.cluster.List(ctx, &deployments, client.InNamespace(samplesNamespace)); err != nil {
		return fmt.Errorf("listing BundleDeployments: %w", err)
	}
	for _, b := range deployments.Items {
		d.tell("deployment "+b.Name, b.Status.Conditions)
	}
	return nil
}

// pipeline is the order in which conditions are told; the sum comes last.
var pipeline = []string{
	v1alpha1.FetchFailedCondition, v1alpha1.StorageOperationFailedCondition, v1alpha1.ArtifactInStorageCondition,
	v1alpha1.SourceReadyCondition, v1alpha1.ConvertedCondition, v1alpha1.PlannedCondition, v1alpha1.AppliedCondition,
	v1alpha1.HealthyCondition, fluxmeta.ReconcilingCondition, fluxmeta.StalledCondition, v1alpha1.ReadyCondition,
}

// tell prints the conditions of an object that changed, save those that only repeat what a later one says.
func (d *demo) tell(who string, conditions []metav1.Condition) {
	var changed []metav1.Condition
	for _, kind := range pipeline {
		c := meta.FindStatusCondition(conditions, kind)
		if c == nil {
			delete(d.seen, who+" "+kind)
			continue
		}
		now := fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
		if d.seen[who+" "+kind] != now {
			d.seen[who+" "+kind] = now
			changed = append(changed, *c)
		}
	}
	for i, c := range changed {
		repeats := func(later metav1.Condition) bool { return later.Message == c.Message }
		if !slices.ContainsFunc(changed[i+1:], repeats) {
			d.sayf("%-26s %-17s %-7s %s: %s", who, c.Type, c.Status, c.Reason, strings.ReplaceAll(shorten(c.Message), "\n", "\n"+strings.Repeat(" ", 53)))
		}
	}
}

// digests matches SHA-256 digests, of which twelve digits tell enough.
var digests = regexp.MustCompile(`sha256:([0-9a-f]{12})[0-9a-f]{52}`)

// shorten makes a message with digests readable.
func shorten(message string) string { return digests.ReplaceAllString(message, "sha256:$1") }
