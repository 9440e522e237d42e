// SPDX-License-Identifier: Apache-2.0

package config

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// Health as Argo CD names it, and the status of Flux that corresponds to it: see fluxStatus.
const (
	healthy     = "Healthy"
	progressing = "Progressing"
	degraded    = "Degraded"
	suspended   = "Suspended"
)

// state is a state of an object, as Argo CD and Flux have to see it.
type state[T any] struct {
	reason  string
	change  func(T)
	argo    string
	message string // of Argo CD; Flux shows none
}

// deploymentStates are the states of a BundleDeployment: one table for the script of Argo CD and the expressions of Flux.
func deploymentStates() map[string]state[*v1alpha1.BundleDeployment] {
	type deployment = v1alpha1.BundleDeployment
	return map[string]state[*deployment]{
		"new":     {"the controller has not seen it: a sync wave waits", func(d *deployment) { d.Status.ObservedGeneration = -1 }, progressing, "waits for the controller"},
		"begun":   {"the controller has seen it and said nothing yet", func(*deployment) {}, progressing, "waits for the controller"},
		"changed": {"what the status says is about an older spec", func(d *deployment) { pipeline.SetReady(d, "Succeeded", "fine"); d.Status.ObservedGeneration = 2 }, progressing, "waits for the controller"},
		"changed, stalled": {"the new spec may be the repair", func(d *deployment) {
			pipeline.SetStalled(d, v1alpha1.ReasonConversionFailed, "no CSV")
			d.Status.ObservedGeneration = 2
		}, progressing, "waits for the controller"},
		"progressing":      {"under way", func(d *deployment) { pipeline.SetProgressing(d, v1alpha1.ReasonHealthProgressing, "1 of 2 Pods") }, progressing, "1 of 2 Pods"},
		"ready":            {"all is well", func(d *deployment) { pipeline.SetReady(d, "Succeeded", "applied") }, healthy, "applied"},
		"retrying":         {"a hiccup must not fail a sync wave", func(d *deployment) { pipeline.SetRetrying(d, v1alpha1.ReasonApplyFailed, "no route") }, progressing, "is tried again: no route"},
		"source not ready": {"neither must an upstream that is away", func(d *deployment) { pipeline.SetRetrying(d, v1alpha1.ReasonSourceNotReady, "503") }, progressing, "is tried again: 503"},
		"unhealthy":        {"what is unhealthy after the timeout is", func(d *deployment) { pipeline.SetRetrying(d, v1alpha1.ReasonHealthFailed, "crash loop") }, degraded, "crash loop"},
		"stalled":          {"it needs user action", func(d *deployment) { pipeline.SetStalled(d, v1alpha1.ReasonConversionFailed, "no CSV") }, degraded, "no CSV"},
		"suspended":        {"whatever it was like", func(d *deployment) { pipeline.SetStalled(d, "Failed", "broken"); d.Spec.Suspend = true }, suspended, "suspended; broken"},
		"suspended, ready": {"what is applied is not what is wanted, perhaps", func(d *deployment) { pipeline.SetReady(d, "Succeeded", "applied"); d.Spec.Suspend = true }, suspended, "suspended; applied"},
		"suspended, new":   {"also before the controller has seen it", func(d *deployment) { d.Spec.Suspend = true }, suspended, "suspended"},
		"being removed": {"a removal is under way", func(d *deployment) {
			removing(d)
			pipeline.SetProgressing(d, "Removing", "waiting for ns")
		}, progressing, "waiting for ns"},
		"being removed, stuck": {"a removal is retried", func(d *deployment) {
			removing(d)
			pipeline.SetStalled(d, "RemovalFailed", "forbidden")
		}, progressing, "forbidden"},
		"held, running": {"what runs is healthy, otherwise waits would time out", func(d *deployment) {
			pipeline.SetReady(d, "Succeeded", "applied")
			approving(d)
		}, healthy, "applied; waits for an approval: 12 objects would be deleted"},
		"held, not running": {"the first revision waits for approval", func(d *deployment) {
			pipeline.SetRetrying(d, "ApprovalPending", "waits")
			approving(d)
		}, suspended, "12 objects would be deleted"},
		"held, stalled": {"an approval would not help", func(d *deployment) {
			pipeline.SetStalled(d, v1alpha1.ReasonConversionFailed, "no CSV")
			approving(d)
		}, degraded, "no CSV"},
	}
}

// sourceStates are the states of a BundleSource.
func sourceStates() map[string]state[*v1alpha1.BundleSource] {
	type source = v1alpha1.BundleSource
	return map[string]state[*source]{
		"new":         {"nothing is fetched yet", func(s *source) { s.Status.ObservedGeneration = -1 }, progressing, ""},
		"begun":       {"the controller has said nothing yet", func(*source) {}, progressing, ""},
		"progressing": {"it is being fetched", func(s *source) { pipeline.SetProgressing(s, v1alpha1.ReasonProgressing, "m") }, progressing, ""},
		"ready":       {"it is published", func(s *source) { pipeline.SetReady(s, "Succeeded", "m") }, healthy, ""},
		"retrying":    {"an upstream that is away comes back", func(s *source) { pipeline.SetRetrying(s, v1alpha1.ReasonUnreachable, "m") }, progressing, ""},
		"stalled":     {"it needs user action", func(s *source) { pipeline.SetStalled(s, v1alpha1.ReasonRefused, "m") }, degraded, ""},
		"suspended":   {"nothing newer is fetched", func(s *source) { pipeline.SetReady(s, "Succeeded", "m"); s.Spec.Suspend = true }, suspended, ""},
	}
}

const observed = 3 // the generation that the status of a state is about

// deploymentIn is a BundleDeployment in a state.
func deploymentIn(s state[*v1alpha1.BundleDeployment]) *v1alpha1.BundleDeployment {
	d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Name: "app", Generation: observed}}
	d.Status.ObservedGeneration = observed
	s.change(d)
	return d
}

// sourceIn is a BundleSource in a state.
func sourceIn(s state[*v1alpha1.BundleSource]) *v1alpha1.BundleSource {
	source := &v1alpha1.BundleSource{ObjectMeta: metav1.ObjectMeta{Name: "app", Generation: observed}}
	source.Status.ObservedGeneration = observed
	s.change(source)
	return source
}

func removing(d *v1alpha1.BundleDeployment) {
	now := metav1.Now()
	d.DeletionTimestamp = &now
}

// approving adds the condition of a deployment that waits for an approval.
func approving(d *v1alpha1.BundleDeployment) {
	pipeline.SetCondition(d, "ApprovalPending", metav1.ConditionTrue, "PruneHeld", "12 objects would be deleted")
}
