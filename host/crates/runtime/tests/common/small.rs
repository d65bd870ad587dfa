//! Small components made on the spot: a core module in text and a world in WIT, as a toolchain would put them together.

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

pub const WIT: &str = include_str!("../../../../../wit/keyrail.wit");

/// Data of a core module: at 64 a whole metadata record, the handler `probe` of the message `probe/probe` version 1, with no
/// fields and in no order. At 16 the name that it uses, of 5 bytes.
pub fn metadata_at_64(name: &str) -> String {
    assert_eq!(name.len(), 5);
    format!(
        r#"(data (i32.const 16) "{name}")
           (data (i32.const 64) "\10\00\00\00\05\00\00\00" "\10\00\00\00\01\00\00\00" "\00\00\00\00"
              "\80\00\00\00\01\00\00\00" "\00\00\00\00" "\00\00\00\00\00\00\00\00" "\00\00\00\00\00\00\00\00")
           (data (i32.const 128) "\10\00\00\00\05\00\00\00" "\10\00\00\00\05\00\00\00" "\01\00\00\00"
              "\00\00\00\00\00\00\00\00")"#
    )
}

/// The parts of a component.
pub struct Small {
    /// The contract; the world `handler` is taken from it.
    pub wit: String,
    pub imports: String,
    pub describe: String,
    pub handle: String,
    pub guest: String,
    pub rest: String,
}

impl Default for Small {
    /// Links, and then traps in whatever it is asked.
    fn default() -> Self {
        Self {
            wit: WIT.into(),
            imports: String::new(),
            describe: "unreachable".into(),
            handle: "unreachable".into(),
            guest: "keyrail:handler/guest@0.1.0".into(),
            rest: String::new(),
        }
    }
}

impl Small {
    /// With another contract: what `from` says becomes `to`.
    pub fn changed(from: &str, to: &str) -> Self {
        assert!(WIT.contains(from), "{from:?} is not in the WIT");
        Self { wit: WIT.replace(from, to), ..Self::default() }
    }

    pub fn importing(imports: &str) -> Self {
        Self { imports: imports.into(), ..Self::default() }
    }

    pub fn core_module(&self) -> Vec<u8> {
        let Self { imports, describe, handle, guest, rest, .. } = self;
        let text = format!(
            r#"(module
                {imports}
                (memory (export "memory") 1)
                {rest}
                (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) i32.const 1024)
                (func (export "{guest}#describe") (result i32) {describe})
                (func (export "{guest}#handle") (param i32) (result i32) {handle}))"#
        );
        wat::parse_str(text).unwrap()
    }

    pub fn component(&self) -> Vec<u8> {
        component_of(self.core_module(), &self.wit, "handler")
    }
}

/// A component of this world.
pub fn component_of(mut core: Vec<u8>, wit: &str, world: &str) -> Vec<u8> {
    let mut resolve = Resolve::default();
    let package = resolve.push_str("small.wit", wit).unwrap();
    let world = resolve.select_world(&[package], Some(world)).unwrap();
    embed_component_metadata(&mut core, &resolve, world, StringEncoding::UTF8).unwrap();
    ComponentEncoder::default().module(&core).unwrap().encode().unwrap()
}
