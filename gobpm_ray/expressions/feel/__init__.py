"""FEEL, the expression language of DMN and BPMN: a large subset, parsed once by an LALR grammar into closures."""
