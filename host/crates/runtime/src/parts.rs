//! What a component is made of, as far as the pool has to know.

use wasmparser::{Chunk, Instance, Parser, Payload};

/// The core instances of one instance of a component. Each component within is taken as made once. A component that does not
/// parse has none: it was compiled before, so there is no such one.
pub(crate) fn core_instances(bytes: &[u8]) -> u32 {
    count(Parser::new(0), bytes).unwrap_or(0)
}

fn count(mut parser: Parser, mut bytes: &[u8]) -> wasmparser::Result<u32> {
    let mut total = 0_u32;
    loop {
        let Chunk::Parsed { consumed, payload } = parser.parse(bytes, true)? else { return Ok(total) };
        bytes = &bytes[consumed..];
        match payload {
            // Nothing is made of code by itself, and there are megabytes of it.
            Payload::ModuleSection { unchecked_range, .. } => {
                bytes = &bytes[unchecked_range.len().min(bytes.len())..];
            }
            Payload::ComponentSection { parser: inner, unchecked_range } => {
                let (within, after) = bytes.split_at(unchecked_range.len().min(bytes.len()));
                total = total.saturating_add(count(inner, within)?);
                bytes = after;
            }
            Payload::InstanceSection(section) => {
                for instance in section {
                    total += u32::from(matches!(instance?, Instance::Instantiate { .. }));
                }
            }
            Payload::End(_) => return Ok(total),
            _ => {}
        }
    }
}
