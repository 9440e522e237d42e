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

// rolloutStates are the states of a BundleRollout, with the conditions that its controller sets: see TestR32Kstatus there.
func rolloutStates() map[string]state[*v1alpha1.BundleRollout] {
	type rollout = v1alpha1.BundleRollout
	// byPlan stands still by plan before a first revision was complete.
	byPlan := func(reason, message string) func(*rollout) {
		return func(r *rollout) {
			pipeline.SetReady(r, reason, message)
			pipeline.SetCondition(r, v1alpha1.ReadyCondition, metav1.ConditionFalse, reason, message)
		}
	}
	ready := func(reason, message string) func(*rollout) {
		return func(r *rollout) { pipeline.SetReady(r, reason, message) }
	}
	return map[string]state[*rollout]{
		"new":               {"the controller has not seen it: a sync wave waits", func(r *rollout) { r.Status.ObservedGeneration = -1 }, progressing, "waits for the controller"},
		"changed":           {"the status is about an older spec", func(r *rollout) { ready("Succeeded", "complete")(r); r.Status.ObservedGeneration = 2 }, progressing, "waits for the controller"},
		"updating":          {"clusters are in flight", func(r *rollout) { pipeline.SetProgressing(r, v1alpha1.ReasonUpdating, "1/3") }, progressing, "1/3"},
		"source not ready":  {"an upstream that is away comes back", func(r *rollout) { pipeline.SetRetrying(r, v1alpha1.ReasonSourceNotReady, "503") }, progressing, "is tried again: 503"},
		"soaking, first":    {"nothing is complete yet", byPlan(v1alpha1.ReasonSoaking, "soaks"), progressing, "soaks"},
		"soaking":           {"what runs is ready: a wait would last for hours", ready(v1alpha1.ReasonSoaking, "soaks"), healthy, "soaks"},
		"approval, first":   {"a user has to approve", byPlan(v1alpha1.ReasonApprovalPending, "waits"), suspended, "waits"},
		"approval":          {"what runs is ready", ready(v1alpha1.ReasonApprovalPending, "waits"), healthy, "waits"},
		"suspended, first":  {"a user has to resume it", byPlan(v1alpha1.ReasonSuspended, "suspended"), suspended, "suspended"},
		"suspended":         {"what runs is ready", ready(v1alpha1.ReasonSuspended, "suspended"), healthy, "suspended"},
		"held, first":       {"a user has to act on a cluster", byPlan(v1alpha1.ReasonHeld, "held"), suspended, "held"},
		"window, first":     {"it opens by itself", byPlan(v1alpha1.ReasonOutsideWindow, "until 22:00"), progressing, "until 22:00"},
		"window":            {"what runs is ready", ready(v1alpha1.ReasonOutsideWindow, "until 22:00"), healthy, "until 22:00"},
		"failed":            {"too many clusters failed", func(r *rollout) { pipeline.SetStalled(r, v1alpha1.ReasonMaxFailuresExceeded, "2 failed") }, degraded, "2 failed"},
		"denied":            {"a user has denied it", func(r *rollout) { pipeline.SetStalled(r, v1alpha1.ReasonApprovalDenied, "denied") }, degraded, "denied"},
		"rolling back":      {"clusters are in flight", func(r *rollout) { pipeline.SetProgressing(r, v1alpha1.ReasonRollingBack, "back") }, progressing, "back"},
		"rolled back":       {"another revision is needed", func(r *rollout) { pipeline.SetStalled(r, v1alpha1.ReasonRevisionRejected, "rejected") }, degraded, "rejected"},
		"complete":          {"all is well", ready("Succeeded", "complete"), healthy, "complete"},
		"being deleted":     {"BundleDeployments are being deleted", func(r *rollout) { removing(r); pipeline.SetProgressing(r, "Removing", "2 left") }, progressing, "2 left"},
		"deletion, blocked": {"it is tried again", func(r *rollout) { removing(r); pipeline.SetRetrying(r, "RemovalFailed", "forbidden") }, progressing, "forbidden"},
	}
}

// rolloutIn is a BundleRollout in a state.
func rolloutIn(s state[*v1alpha1.BundleRollout]) *v1alpha1.BundleRollout {
	r := &v1alpha1.BundleRollout{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.BundleRolloutKind}}
	r.Name, r.Generation, r.Status.ObservedGeneration = "app", observed, observed
	s.change(r)
	return r
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

func removing(object metav1.Object) {
	object.SetDeletionTimestamp(new(metav1.Now()))
}

// approving adds the condition of a deployment that waits for an approval.
func approving(d *v1alpha1.BundleDeployment) {
	pipeline.SetCondition(d, "ApprovalPending", metav1.ConditionTrue, "PruneHeld", "12 objects would be deleted")
}
