// SPDX-License-Identifier: Apache-2.0

package controlplane

// PodAnnotation on a Pod, so mostly in the template of a workload, tells how its fake run goes. Without
// it a Pod becomes ready at once, and when its restart policy is not Always it then completes.
const PodAnnotation = "controlplane.satchel.dev/pod"

// The values of [PodAnnotation].
const (
	// PodPending leaves the Pod in the phase Pending, after it was scheduled.
	PodPending = "pending"
	// PodCrash lets the Pod run with containers that wait in CrashLoopBackOff.
	PodCrash = "crash"
	// PodRun keeps a Pod running that would complete otherwise, such as a Job's.
	PodRun = "run"
	// PodFail lets a Pod that is not restarted end in the phase Failed.
	PodFail = "fail"
)
