// SPDX-License-Identifier: Apache-2.0

// Package e2e migrates from other tools to an installation of Satchel with both controllers as processes of their own.
package e2e
