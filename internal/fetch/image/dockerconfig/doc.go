// SPDX-License-Identifier: Apache-2.0

// Package dockerconfig reads logins of registries from a Docker configuration file. It runs no credential helper.
package dockerconfig
