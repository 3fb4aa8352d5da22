//go:build tools

// Package tools names the command that this module exists to build, so that go.mod and go.sum lock it.
package tools

import _ "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
