// SPDX-License-Identifier: Apache-2.0

package stage

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
)

// Events emits events about deployments.
type Events struct {
	Recorder events.EventRecorder
}

// Normal emits an event about what was done.
func (e Events) Normal(of *Subject, reason, action, note string) {
	e.Recorder.Eventf(of.Object, nil, corev1.EventTypeNormal, reason, action, "%s", note)
}

// Warning emits an event about what needs attention.
func (e Events) Warning(of *Subject, reason, action, note string) {
	e.Recorder.Eventf(of.Object, nil, corev1.EventTypeWarning, reason, action, "%s", note)
}
