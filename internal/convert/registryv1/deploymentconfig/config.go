// SPDX-License-Identifier: Apache-2.0

// Package deploymentconfig reads spec.registryV1.deploymentConfig, and applies it to the Deployments of a bundle.
package deploymentconfig

import (
	corev1 "k8s.io/api/core/v1"
)

// Config changes the Deployments of a bundle as the config of an OLM Subscription does. Init containers stay as
// they are.
type Config struct {
	// Env replaces variables of the same name in all containers and adds the others; EnvFrom adds.
	Env     []corev1.EnvVar        `json:"env,omitempty"`
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`
	// Volumes and VolumeMounts replace those of the same volume name and add the others.
	Volumes      []corev1.Volume      `json:"volumes,omitempty"`
	VolumeMounts []corev1.VolumeMount `json:"volumeMounts,omitempty"`
	// Tolerations adds those that are missing.
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// Resources replaces those of all containers.
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// NodeSelector replaces the bundle's.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Affinity replaces the parts that are set; an empty part, or an empty affinity, removes what the bundle has.
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
	// Annotations are added to Deployments and Pods where the key is not there yet.
	Annotations map[string]string `json:"annotations,omitempty"`
}
