// SPDX-License-Identifier: Apache-2.0

package stage

// Names of the steps that other code than their declaration refers to.
const (
	StepInputs     = "inputs"
	StepConvert    = "convert"
	StepCertify    = "certify"
	StepApprove    = "approve"
	StepPruneFirst = "prune-first"
	StepApply      = "apply"
)
