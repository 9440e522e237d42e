// SPDX-License-Identifier: Apache-2.0

// Package flux tests Satchel with Flux's own kustomize-controller, in the release suite. The controller is built from the module
// in the folder controllers, so that its dependencies stay out of the product's. Flux's other controllers are not run: the
// modules of helm-controller and notification-controller, and one that source-controller needs, cannot be downloaded as Go
// modules. So Satchel publishes the artifacts, and the component for the CRDs of notification-controller is built on their shape,
// in config.
package flux
