// SPDX-License-Identifier: Apache-2.0

// Package autoscaling tells which fields of other objects an autoscaler sets: the replicas by a HorizontalPodAutoscaler or a
// ScaledObject of KEDA, the resources of containers by a VerticalPodAutoscaler. It is pure.
package autoscaling
